import { expect, test } from "vitest";

import { localeFor, memory, moment, money, seconds } from "./format";

test.each([
  [0, "$0.00"],
  [1_840_000_000, "$1.84"],
  [1_849_999_999, "$1.84"],
  [10_000_000, "$0.01"],
  [9_999_999, "$0.0099"],
  [4_480, "$0.0000044"],
  [595, "$0.00000059"],
  [12, "$0.000000012"],
  [1, "$0.000000001"],
  [-3_500_000_000, "-$3.50"],
  [8_999_999_000_000_000, "$8,999,999.00"],
])("%i nano-USD are written %s", (nano, text) => {
  expect(money(nano, "en-US")).toBe(text);
});

test("money follows the locale", () => {
  expect(money(1_840_000_000, "de-DE")).toMatch(/^1,84\s\$$/);
});

test("memory under a GiB is in MiB", () => {
  expect(memory(0, "en-US")).toBe("0 MiB");
  expect(memory(912, "en-US")).toBe("912 MiB");
  expect(memory(5324, "en-US")).toBe("5.2 GiB");
});

test("times have one decimal", () => {
  expect(seconds(600, "en-US")).toBe("0.6");
  expect(seconds(601, "en-US")).toBe("0.7");
  expect(seconds(36, "en-US")).toBe("0.1");
  expect(seconds(0, "en-US")).toBe("0.1");
});

test("a moment of another day carries its date", () => {
  const noon = new Date(2026, 10, 30, 12, 5).getTime();
  expect(moment(noon, noon + 1000, "en-GB")).toBe("12:05");
  expect(moment(noon, noon + 86_400_000, "en-GB")).toBe("30 Nov, 12:05");
});

test("numbers keep the system's region when it speaks the page's language", () => {
  expect(localeFor("en")).toMatch(/^en/);
  expect(localeFor("sw")).toBe("sw");
});
