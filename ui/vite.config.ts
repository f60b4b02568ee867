import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  // Tests mount the components, which only Svelte's browser build can do.
  resolve: mode === "test" ? { conditions: ["browser"] } : {},
  // The WebViews that the window runs in: WebKitGTK 2.40, WebView2, macOS 13.
  build: { target: ["safari16", "chrome110"], modulePreload: { polyfill: false } },
  test: { environment: "happy-dom", setupFiles: ["src/test-setup.ts"] },
}));
