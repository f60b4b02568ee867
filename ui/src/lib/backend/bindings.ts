// Made by `cargo xtask bindings` from crates/protocol/src/desk.rs. Do not edit.

/**
 * What the owner's program asks.
 */
export type Ask = { "ask": "status" } | { "ask": "watch" } | { "ask": "pause", minutes: number | null, } | { "ask": "pause_until_tomorrow" } | { "ask": "resume" } | { "ask": "serve_anyway" } | { "ask": "why", day: string | null, } | { "ask": "earnings" } | { "ask": "open_window" } | { "ask": "quit" };

/**
 * What the node answers.
 */
export type Answer = { "answer": "snapshot" } & Snapshot | { "answer": "done" } | { "answer": "refused", sentence: string, } | { "answer": "why", spans: Array<Span>, } | { "answer": "earnings", rows: Array<Earning>, } | { "answer": "garbled", sentence: string, };

/**
 * Everything that a person may see about the node at one moment. Absent is unknown, never zero.
 */
export type Snapshot = { 
/**
 * The language of the sentences, as a tag such as `en` or `sw`; the window's labels follow it.
 */
language: string, 
/**
 * Which shape the tray shows.
 */
shape: Shape, 
/**
 * The status sentence: "Serving SmolLM2 135M - 2 jobs".
 */
sentence: string, 
/**
 * Why, in one more sentence; empty when the sentence says it all.
 */
reason: string, 
/**
 * What a click on the primary button does now.
 */
primary: Primary, 
/**
 * Whether `ServeAnyway` would be granted now.
 */
may_serve_anyway: boolean, node: NodeId, link: LinkState, model: ModelOnOffer | null, active_jobs: number, 
/**
 * The game that has the machine now. While there is one, nothing may come between it and the owner.
 */
game: string | null, 
/**
 * Generated tokens per second, one value for each of the last 60 seconds, oldest first.
 */
tokens_per_second: Array<number>, figures: Figures | null, machine: Machine, last_hand_over: HandOver | null, 
/**
 * What the owner must know, one sentence each.
 */
faults: Array<string>, };

/**
 * The five shapes of the tray icon.
 */
export type Shape = "serving" | "resting" | "off" | "changing" | "needs_you";

/**
 * What the primary button does.
 */
export type Primary = "pause" | "resume" | "nothing";

/**
 * The node's link to its broker.
 */
export type LinkState = "not_joined" | "dialling" | "joined" | "refused";

/**
 * The model that the node offers.
 */
export type ModelOnOffer = { name: string, digest: ModelDigest, prices: Prices, slots: number, context: number, };

/**
 * The four figures of the first page.
 */
export type Figures = { today: NanoUsd, month: NanoUsd, jobs_today: number, 
/**
 * Share of today, so far, in which the node served.
 */
served_today: Percent, served_today_minutes: number, };

/**
 * The machine strip.
 */
export type Machine = { 
/**
 * `None` without a supported GPU.
 */
gpu: string | null, vram_total: MiB | null, vram_ours: MiB | null, vram_free: MiB | null, temperature: Celsius | null, power: Watts | null, utilisation: Percent | null, 
/**
 * Resident memory of the worker.
 */
worker_resident: MiB | null, 
/**
 * What the newest worker's sandbox really enforces; `None` before there was one.
 */
sandbox: Array<Denied> | null, };

/**
 * One thing that a sandbox keeps from the worker.
 */
export type Denied = "files" | "writes" | "network" | "exec";

/**
 * The last time that the machine was given back.
 */
export type HandOver = { at: UnixMillis, 
/**
 * What it was given to.
 */
to: string, 
/**
 * From the first sign to "no new job", to the worker's end and to memory confirmed free, in milliseconds.
 */
stopped_ms: number, worker_gone_ms: number, memory_back_ms: number, 
/**
 * GPU memory that our processes still held afterwards; `None` when it cannot be measured here.
 */
vram_left: MiB | null, 
/**
 * Jobs that went on elsewhere.
 */
jobs_handed_back: number, };

/**
 * A stretch of time in one state.
 */
export type Span = { from: UnixMillis, 
/**
 * `None` while it lasts.
 */
to: UnixMillis | null, shape: Shape, sentence: string, 
/**
 * By what a game was seen; empty for everything else.
 */
evidence: string, };

/**
 * One settled attempt: a row of the owner's earnings.
 */
export type Earning = { sequence: number, settled_at: UnixMillis, job: JobId, attempt: number, model: string, first_position: number, positions: number, input_tokens: number, prices: Prices, pay: NanoUsd, };

/**
 * An amount in nano-USD (a thousand-millionth of a dollar). An `i64` holds nine thousand million dollars.
 */
export type NanoUsd = number;

/**
 * A price in nano-USD per million tokens. $0.10 per million tokens is `Price(100_000_000)`.
 */
export type Price = number;

/**
 * The prices of one model on one node: what a consumer pays for prompt and for generated tokens.
 */
export type Prices = { 
/**
 * For each million prompt tokens.
 */
input: Price, 
/**
 * For each million generated tokens.
 */
output: Price, };

/**
 * A node, which is its ed25519 public key.
 */
export type NodeId = string;

/**
 * A model's identity: the SHA-256 of its catalogue entry.
 * Two machines that hold the same digest hold the same weights, tokenizer, template, stop ids and context.
 */
export type ModelDigest = string;

/**
 * A job: one request being served. 16 random bytes, written as 32 hexadecimal digits.
 */
export type JobId = string;

/**
 * Mebibytes (2^20 bytes) of memory.
 */
export type MiB = number;

/**
 * Degrees Celsius.
 */
export type Celsius = number;

/**
 * Electric power in watts.
 */
export type Watts = number;

/**
 * A share from 0 to 100.
 */
export type Percent = number;

/**
 * A moment in milliseconds since 1970-01-01 UTC, as it is stored and sent.
 */
export type UnixMillis = number;
