// The one port between the page and the node. The page decides nothing: it shows snapshots and passes wishes on.

import type { Answer, Ask, Snapshot } from "./bindings";

/** What the page hears about the node. */
export type News =
  | { kind: "connecting" }
  | { kind: "snapshot"; snapshot: Snapshot }
  /** The node does not answer. `since` is in milliseconds since 1970. */
  | { kind: "gone"; since: number };

export interface Backend {
  /** Calls `hear` at once and after each change, until the returned function is called. */
  watch(hear: (news: News) => void): () => void;
  /** Passes a wish to the node. Rejects when the node does not answer. */
  ask(ask: Ask): Promise<Answer>;
  /** Starts Wakati again after it has gone. */
  start(): Promise<void>;
}
