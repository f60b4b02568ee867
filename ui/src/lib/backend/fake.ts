// A backend for a plain browser and for tests. It holds news and remembers what it was asked, and decides nothing.
// In a browser, `?state=NAME` shows one of `states`.

import type { Backend, News } from "./backend";
import type { Answer, Ask, Snapshot } from "./bindings";

export class Fake implements Backend {
  readonly asked: Ask[] = [];
  started = 0;
  /** What the next wishes are answered with. */
  answer: Answer | Error = { answer: "done" };
  #listeners = new Set<(news: News) => void>();

  constructor(private news: News = { kind: "connecting" }) {}

  tell(news: News): void {
    this.news = news;
    for (const hear of this.#listeners) hear(news);
  }

  watch(hear: (news: News) => void): () => void {
    this.#listeners.add(hear);
    hear(this.news);
    return () => this.#listeners.delete(hear);
  }

  async ask(ask: Ask): Promise<Answer> {
    this.asked.push(ask);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }

  async start(): Promise<void> {
    this.started += 1;
  }
}

const serving: Snapshot = {
  language: "en",
  shape: "serving",
  sentence: "Serving SmolLM2 135M - 2 jobs",
  reason: "",
  primary: "pause",
  may_serve_anyway: false,
  node: "7d4f9b1e5c3a7d4f9b1e5c3a7d4f9b1e5c3a7d4f9b1e5c3a7d4f9b1e5c3a7d4f",
  link: "joined",
  model: {
    name: "SmolLM2 135M",
    digest: "ab".repeat(32),
    prices: { input: 50_000_000, output: 100_000_000 },
    slots: 2,
    context: 2048,
  },
  active_jobs: 2,
  game: null,
  tokens_per_second: Array.from({ length: 60 }, (_, second) =>
    second < 14 ? 0 : Math.round(310 + 60 * Math.sin(second / 4) + 25 * Math.sin(second * 1.7)) / 10,
  ),
  figures: {
    today: 1_840_000_000,
    month: 31_277_000_000,
    jobs_today: 412,
    served_today: 41,
    served_today_minutes: 192,
  },
  machine: {
    gpu: "NVIDIA GeForce RTX 4070",
    vram_total: 12282,
    vram_ours: 5324,
    vram_free: 5730,
    temperature: 61,
    power: 142,
    utilisation: 88,
    worker_resident: 912,
    sandbox: ["files", "writes", "network", "exec"],
  },
  last_hand_over: {
    at: Date.UTC(2026, 10, 30, 19, 12),
    to: "Elden Ring",
    stopped_ms: 40,
    worker_gone_ms: 210,
    memory_back_ms: 620,
    vram_left: 0,
    jobs_handed_back: 1,
  },
  faults: [],
};

const nothingKnown: Snapshot = {
  ...serving,
  shape: "changing",
  sentence: "Loading SmolLM2 135M",
  reason: "The model is being read from the disk.",
  active_jobs: 0,
  tokens_per_second: [],
  figures: null,
  machine: {
    gpu: null,
    vram_total: null,
    vram_ours: null,
    vram_free: null,
    temperature: null,
    power: null,
    utilisation: null,
    worker_resident: null,
    sandbox: null,
  },
  last_hand_over: null,
};

const shown = (snapshot: Partial<Snapshot>): News => ({ kind: "snapshot", snapshot: { ...serving, ...snapshot } });

/** One piece of news for each state that the page draws. */
export const states: Record<string, News> = {
  connecting: { kind: "connecting" },
  gone: { kind: "gone", since: Date.UTC(2026, 10, 30, 19, 12) },
  serving: shown({}),
  kiswahili: shown({ language: "sw", sentence: "Inatoa huduma ya SmolLM2 135M - kazi 2" }),
  resting: shown({
    shape: "resting",
    sentence: "Resting - Elden Ring is running",
    reason: "The whole GPU belongs to the game. Serving returns 30 seconds after it ends.",
    primary: "nothing",
    may_serve_anyway: true,
    active_jobs: 0,
    game: "Elden Ring",
    tokens_per_second: Array.from({ length: 60 }, (_, second) => (second < 20 ? 31 : 0)),
  }),
  paused: shown({
    shape: "off",
    sentence: "Paused until you resume",
    primary: "resume",
    active_jobs: 0,
    tokens_per_second: Array.from({ length: 60 }, () => 0),
  }),
  unconfined: shown({ machine: { ...serving.machine, sandbox: [] } }),
  measuring: { kind: "snapshot", snapshot: nothingKnown },
  dialling: shown({
    shape: "changing",
    sentence: "Waiting for the broker",
    reason: "The broker does not answer. Wakati dials again by itself.",
    link: "dialling",
    active_jobs: 0,
    tokens_per_second: Array.from({ length: 60 }, () => 0),
  }),
  notJoined: shown({
    shape: "needs_you",
    sentence: "Not joined to a broker",
    reason: "Ask a broker's operator for an invite.",
    primary: "nothing",
    link: "not_joined",
    model: null,
    active_jobs: 0,
    tokens_per_second: [],
    figures: null,
    last_hand_over: null,
  }),
  refused: shown({
    shape: "needs_you",
    sentence: "The broker refused this machine",
    reason: "The invite was used before. Ask the operator for a new one.",
    primary: "nothing",
    link: "refused",
    active_jobs: 0,
    tokens_per_second: [],
  }),
  faulty: shown({
    faults: ["The GPU's temperature cannot be read. Serving goes on, without the heat limit."],
  }),
};
