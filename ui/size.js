// The page's weight against its budget, in kB (1000 bytes) after gzip. Exits 1 when a bar is missed.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const bars = { js: 80, css: 12 };
const weights = { js: 0, css: 0 };
for (const file of readdirSync("dist", { recursive: true })) {
  const kind = file.split(".").at(-1);
  if (kind in weights) weights[kind] += gzipSync(readFileSync(`dist/${file}`)).length / 1000;
}
let short = false;
for (const [kind, bar] of Object.entries(bars)) {
  const ok = weights[kind] > 0 && weights[kind] <= bar;
  short ||= !ok;
  console.log(`${kind.padEnd(4)} ${weights[kind].toFixed(1).padStart(6)} kB gzip  bar ${bar} kB  ${ok ? "ok" : "short"}`);
}
process.exit(short ? 1 : 0);
