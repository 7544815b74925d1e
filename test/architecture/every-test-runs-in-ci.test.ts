import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
const foldersOf = (script: string): string[] => scripts[script]?.match(/\btest\/[\w-]+(?=\/( |$))/g) ?? [];

/** Runs programs of other projects, which CI does not download. CI replays their recorded traffic instead. */
const byHand = "test:clients";

test("each folder with tests belongs to npm test or to npm run test:more, and CI runs both", () => {
  const files = globSync("test/**/*.test.ts", { cwd: root, exclude: ["**/node_modules"] });
  const folders = new Set(files.map((file) => file.split(/[\\/]/).slice(0, 2).join("/")));
  expect(["test", "test:more", byHand].flatMap(foldersOf).toSorted()).toEqual([...folders].toSorted());
  const steps = readFileSync(join(root, ".ci/run"), "utf8");
  expect(steps).toMatch(/^run npm test\b/m);
  expect(steps).toMatch(/^run npm run -s test:more\b/m);
});
