// The port inside the window. The only file that knows Tauri.

import { invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";

import type { Backend, News } from "./backend";

export const tauri: Backend = {
  watch(hear) {
    // Listening comes first, so that no change falls between the first news and the next.
    const listening = listen<News>("news", (event) => hear(event.payload));
    void listening.then(() => invoke<News>("latest")).then(hear);
    return () => void listening.then((stop) => stop());
  },
  ask: (ask) => invoke("ask", { ask }),
  start: () => invoke("start"),
};
