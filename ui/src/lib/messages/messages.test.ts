import { expect, test } from "vitest";

import { en } from "./en";
import { languageFor, messagesIn } from "./messages";
import { sw } from "./sw";

// That no label is missing is checked by the compiler: `sw` has the type of `en`.

test("no label of one language was left in the other", () => {
  const same = Object.entries(en).filter(
    ([name, label]) => typeof label === "string" && sw[name as keyof typeof sw] === label,
  );
  expect(same.map(([name]) => name)).toEqual(["vramOurs"]);
});

test("labels with numbers keep every number", () => {
  for (const labels of [en, sw]) {
    expect(labels.ribbonNow("3.5", "9")).toMatch(/3\.5.*9/);
    expect(labels.servedFor("3", "12")).toMatch(/3.*12/);
    expect(labels.prices("$1", "$2")).toMatch(/\$1.*\$2/);
  }
});

test("an unknown language falls back to English", () => {
  expect(languageFor("tlh")).toBe("en");
  expect(languageFor("sw-KE")).toBe("sw");
  expect(messagesIn("sw")).toBe(sw);
});
