import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { closingLine } from "../../harness/closing-line.ts";

const vitestPath = resolve("node_modules/vitest/vitest.mjs");
const reporterPath = resolve("test/harness/closing-line.ts");

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "trunkline-closing-line-"))));
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs vitest for itself on the given files, as `npm test` does, and keeps its last line. */
async function lastLineOf(files: Record<string, string>): Promise<{ line: string | undefined; exitCode: unknown }> {
  const config = `import { ClosingLine } from ${JSON.stringify(reporterPath)};
    export default { test: { globals: true, reporters: ["default", new ClosingLine()], globalSetup: "setup.mjs" } };`;
  const setup = `export const setup = () => {}; export const teardown = () => console.log("torn down");`;
  for (const [name, content] of Object.entries({ "vitest.config.mjs": config, "setup.mjs": setup, ...files })) {
    await writeFile(join(folder, name), content);
  }
  const child = spawn(process.execPath, [vitestPath, "run", "--root", folder], { stdio: ["ignore", "pipe", "ignore"] });
  const exitCode = new Promise((done) => child.once("exit", done));
  const output = await text(child.stdout);
  return { line: output.trimEnd().split("\n").at(-1), exitCode: await exitCode };
}

test("names skipped tests only when there are any", () => {
  expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
  expect(closingLine({ passed: 3, failed: 1, skipped: 2 })).toBe("3 passed, 1 failed, 2 skipped");
});

test("is the very last line, behind the summary and what teardowns say", async () => {
  const file = `test("a", () => {}); describe("suite", () => { test("b", () => {}); test.skip("c", () => {}); });`;
  expect(await lastLineOf({ "a.test.mjs": file })).toEqual({ line: "2 passed, 0 failed, 1 skipped", exitCode: 0 });
});

test("counts failed tests, files that do not load and hooks that fail", async () => {
  const files = {
    "fails.test.mjs": `test("a", () => {}); test("b", () => { throw new Error("no"); });`,
    "does-not-load.test.mjs": `throw new Error("no");`,
    "hook.test.mjs": `describe("suite", () => { afterAll(() => { throw new Error("no"); }); test("c", () => {}); });`,
  };
  expect(await lastLineOf(files)).toEqual({ line: "2 passed, 3 failed", exitCode: 1 });
});

test("counts an error that nobody caught", async () => {
  const file = `test("a", () => new Promise((done) => setTimeout(() => { done(); throw new Error("no"); })));`;
  expect(await lastLineOf({ "a.test.mjs": file })).toEqual({ line: "1 passed, 1 failed", exitCode: 1 });
});

test("never says 0 failed when the run fails without a test", async () => {
  expect(await lastLineOf({})).toEqual({ line: "0 passed, 1 failed", exitCode: 1 });
  const setup = `export const setup = () => { throw new Error("no"); };`;
  const broken = await lastLineOf({ "a.test.mjs": `test("a", () => {});`, "setup.mjs": setup });
  expect(broken).toEqual({ line: "0 passed, 1 failed", exitCode: 1 });
});
