import { render, screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { tick } from "svelte";
import { expect, test } from "vitest";

import App from "./App.svelte";
import type { News } from "./lib/backend/backend";
import { Fake, states } from "./lib/backend/fake";
import { sw } from "./lib/messages/sw";

function show(state: News | undefined) {
  if (!state) throw new Error("no such state");
  const backend = new Fake(state);
  return { backend, ...render(App, { backend }) };
}

const title = () => screen.getByRole("heading", { level: 1 });

test("while connecting there is a title and no number", () => {
  const { container } = show(states.connecting);
  expect(title()).toHaveTextContent("Connecting to Wakati");
  expect(container.textContent).not.toMatch(/\d/);
});

test("the node's sentence is the title, and pause is one click", async () => {
  const { backend } = show(states.serving);
  expect(title()).toHaveTextContent("Serving SmolLM2 135M - 2 jobs");
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(backend.asked).toEqual([{ ask: "pause", minutes: null }]);
});

test("the four figures are those of the node", () => {
  show(states.serving);
  const figures = screen.getByRole("region", { name: "Earnings and work" });
  for (const text of ["$1.84", "$31.27", "412", "41%", "3 h 12 min"]) expect(figures).toHaveTextContent(text);
});

test("figures that are not known are words, not zeros", () => {
  const { container } = show(states.measuring);
  expect(within(screen.getByRole("region", { name: "Earnings and work" })).getAllByText("Not known yet")).toHaveLength(4);
  expect(screen.getByText("Measuring")).toBeVisible();
  expect(screen.getByText("No supported GPU")).toBeVisible();
  expect(container.textContent).not.toContain("$0.00 ");
});

test("a game shows its reason, and nothing to press but to serve anyway", () => {
  show(states.resting);
  expect(title()).toHaveTextContent("Resting - Elden Ring is running");
  expect(screen.getByText(/belongs to the game/)).toBeVisible();
  expect(screen.getAllByRole("button").map((button) => button.textContent)).toEqual(["Serve anyway..."]);
});

test("a pause is ended by the same button", async () => {
  const { backend } = show(states.paused);
  await userEvent.click(screen.getByRole("button", { name: "Resume" }));
  expect(backend.asked).toEqual([{ ask: "resume" }]);
});

test("a refusal is shown in the node's words and goes away with the next wish", async () => {
  const { backend } = show(states.serving);
  backend.answer = { answer: "refused", sentence: "A job is being handed over." };
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(screen.getByRole("alert")).toHaveTextContent("A job is being handed over.");
  backend.answer = { answer: "done" };
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a wish that nobody answers says so", async () => {
  const { backend } = show(states.serving);
  backend.answer = new Error("gone");
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(screen.getByRole("alert")).toHaveTextContent("Nothing was changed");
});

test("a node that is gone is said once, with one button, and what was known stays dimmed", async () => {
  const { backend, container } = show(states.serving);
  backend.tell({ kind: "gone", since: Date.now() });
  await tick();
  expect(screen.getAllByRole("heading", { level: 1 })).toHaveLength(1);
  expect(title()).toHaveTextContent("Wakati is not running");
  expect(container.querySelector(".home")).toHaveClass("stale");
  await userEvent.click(screen.getByRole("button", { name: "Start Wakati" }));
  expect(backend.started).toBe(1);
  backend.tell(states.paused!);
  await tick();
  expect(title()).toHaveTextContent("Paused until you resume");
  expect(container.querySelector(".home")).not.toHaveClass("stale");
});

test("a node that was never there shows no figures", () => {
  const { container } = show(states.gone);
  expect(title()).toHaveTextContent("Wakati is not running");
  expect(container.querySelector(".home")).toBeNull();
});

test.each([
  ["notJoined", "Not joined"],
  ["dialling", "Connecting"],
  ["refused", "Refused"],
])("the link to the broker is named: %s", (state, label) => {
  show(states[state]);
  expect(screen.getByText(label)).toBeVisible();
});

test("faults are listed under their own heading", () => {
  show(states.faulty);
  const faults = screen.getByRole("region", { name: "Needs attention" });
  expect(within(faults).getAllByRole("listitem")).toHaveLength(1);
});

test("serving anyway is asked for twice, and offered only where it would be granted", async () => {
  const { backend, unmount } = show(states.resting);
  await userEvent.click(screen.getByRole("button", { name: "Serve anyway..." }));
  expect(backend.asked).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await userEvent.click(screen.getByRole("button", { name: "Serve anyway..." }));
  await userEvent.click(screen.getByRole("button", { name: "Serve anyway" }));
  expect(backend.asked).toEqual([{ ask: "serve_anyway" }]);
  unmount();
  show(states.serving);
  expect(screen.queryByRole("button", { name: /Serve anyway/ })).toBeNull();
});

test("what the sandbox keeps from the model's process is shown, and when that is nothing", () => {
  const { unmount } = show(states.serving);
  expect(screen.getByText("other files, writing, the network, other programs")).toBeVisible();
  unmount();
  show(states.unconfined);
  expect(screen.getByText("nothing: this system does not confine it")).toBeVisible();
});

test("the last hand-over has its time, what was left and the jobs that went on", () => {
  show(states.serving);
  const card = screen.getByRole("region", { name: "Last hand-over" });
  for (const text of ["To Elden Ring", "in 0.7 s", "0 MiB left", "1 job went on elsewhere"]) {
    expect(card).toHaveTextContent(text);
  }
});

test("the ribbon has a sentence and its numbers in a table", () => {
  show(states.resting);
  expect(screen.getByText("0 now, 31 at the peak of the last minute")).toBeVisible();
  const rows = within(screen.getByRole("table", { hidden: true })).getAllByRole("row", { hidden: true });
  expect(rows).toHaveLength(61);
  expect(rows[60]).toHaveTextContent(/^59\s*31$/);
});

test("labels follow the language of the node's sentences", () => {
  show(states.kiswahili);
  expect(screen.getByRole("button", { name: sw.pause })).toBeVisible();
  expect(document.documentElement.lang).toBe("sw");
});

test("the title does not change while only numbers do, so it is not read aloud again", async () => {
  const { backend } = show(states.serving);
  const live = title().closest("[aria-live=polite]");
  const before = title();
  let changes = 0;
  const observer = new MutationObserver((seen) => (changes += seen.length));
  observer.observe(live!, { childList: true, characterData: true, subtree: true });
  const news = states.serving as Extract<News, { kind: "snapshot" }>;
  backend.tell({ kind: "snapshot", snapshot: { ...news.snapshot, tokens_per_second: [1, 2, 3] } });
  await tick();
  await Promise.resolve();
  observer.disconnect();
  expect(title()).toBe(before);
  expect(changes).toBe(0);
});
