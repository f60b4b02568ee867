import type { Backend } from "./backend";

/** The node's own backend in the window, the fake one in a plain browser while the page is being worked on. */
export async function backend(): Promise<Backend> {
  if (import.meta.env.DEV && !("__TAURI_INTERNALS__" in window)) {
    const { Fake, states } = await import("./fake");
    const wanted = new URLSearchParams(location.search).get("state") ?? "serving";
    return new Fake(states[wanted] ?? states.serving!);
  }
  return (await import("./tauri")).tauri;
}
