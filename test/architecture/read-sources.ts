import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import type { Source } from "./find-violations.ts";

/** Every TypeScript file of the project. */
export function readSources(): Source[] {
  const root = join(import.meta.dirname, "../..");
  return globSync("{services,shared,test}/**/*.{ts,tsx}", { cwd: root, exclude: ["**/node_modules"] }).map((path) => ({
    path: path.replaceAll(sep, "/"),
    text: readFileSync(join(root, path), "utf8"),
  }));
}
