import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { closingLine, reportPathVariable } from "../harness/closing-line.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

const vitestPath = resolve("node_modules/vitest/vitest.mjs");
const runnerPath = resolve("test/harness/run-tests.ts");
const reporterPath = resolve("test/harness/closing-line.ts");

let folder: string;
beforeEach(() => void (folder = folderOfTest()));

/** Runs the given files as a project of their own, with vitest alone or with the runner of `npm test`. */
async function run(files: Record<string, string>, by: "vitest" | "runner" = "vitest") {
  const config = `import { ClosingLine } from ${JSON.stringify(reporterPath)};
    export default { test: { pool: "threads", reporters: ["default", new ClosingLine()], projects: [
      { test: { globals: true, name: "unit", include: ["unit/*.test.mjs"] } },
      { test: { globals: true, name: "real", include: ["*.test.mjs"], globalSetup: "setup.mjs" } } ] } };`;
  const setup = `export const setup = () => {}; export const teardown = () => console.log("torn down");`;
  for (const [name, content] of Object.entries({ "vitest.config.mjs": config, "setup.mjs": setup, ...files })) {
    await writeFile(join(folder, name), content);
  }
  const args = by === "runner" ? [runnerPath, `--root=${folder}`] : [vitestPath, "run", `--root=${folder}`];
  // The run that this test belongs to may have a report of its own.
  const { [reportPathVariable]: _, ...env } = process.env;
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"], env });
  const ended = new Promise((done) => child.once("exit", done));
  const lines = (await text(child.stdout)).trimEnd().split("\n");
  return { lines, line: lines.at(-1), exitCode: await ended };
}

const passing = `test("a", () => {});`;
const failing = `test("b", () => {}); test("c", () => { throw new Error("no"); });`;
/** Fails in its first run and passes in the second. */
const failingOnce = `import { existsSync, writeFileSync } from "node:fs";
  test("d", () => { const mark = import.meta.dirname + "/ran"; const ran = existsSync(mark); writeFileSync(mark, ""); if (!ran) throw new Error("first"); });`;

describe("the closing line", () => {
  test("it names skipped tests only when there are any", () => {
    expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
    expect(closingLine({ passed: 3, failed: 1, skipped: 2 })).toBe("3 passed, 1 failed, 2 skipped");
  });

  test("it is the very last line, after the summary and the output of teardowns", async () => {
    const file = `test("a", () => {}); describe("suite", () => { test("b", () => {}); test.skip("c", () => {}); });`;
    const { line, exitCode } = await run({ "a.test.mjs": file });
    expect({ line, exitCode }).toEqual({ line: "2 passed, 0 failed, 1 skipped", exitCode: 0 });
  });

  test("it counts failed tests, files that do not load, failed hooks and uncaught errors", async () => {
    const { line, exitCode } = await run({
      "fails.test.mjs": failing,
      "does-not-load.test.mjs": `throw new Error("no");`,
      "hook.test.mjs": `describe("suite", () => { afterAll(() => { throw new Error("no"); }); test("c", () => {}); });`,
      "uncaught.test.mjs": `test("a", () => new Promise((done) => setTimeout(() => { done(); throw new Error("no"); })));`,
    });
    expect({ line, exitCode }).toEqual({ line: "3 passed, 4 failed", exitCode: 1 });
  });

  test("it never says 0 failed when the run fails without a test", async () => {
    expect((await run({})).line).toBe("0 passed, 1 failed");
    const setup = `export const setup = () => { throw new Error("no"); };`;
    const { line, exitCode } = await run({ "a.test.mjs": passing, "setup.mjs": setup });
    expect({ line, exitCode }).toEqual({ line: "0 passed, 1 failed", exitCode: 1 });
  });
});

describe("a failed file is run once more, alone", () => {
  test("a file that passes the second time is counted as passed, and both outcomes are printed", async () => {
    const { lines, exitCode } = await run({ "a.test.mjs": passing, "once.test.mjs": failingOnce }, "runner");
    expect(lines.slice(-4)).toEqual([
      "Files that needed a second run:",
      "  once.test.mjs: first 0 passed, 1 failed; then, alone, 1 passed, 0 failed",
      "FAILED ONCE once.test.mjs > d: first",
      "2 passed, 0 failed",
    ]);
    expect(exitCode).toBe(0);
  });

  test("a file that fails twice fails the run, and its failures are named", async () => {
    const { lines, exitCode } = await run({ "a.test.mjs": passing, "fails.test.mjs": failing }, "runner");
    expect(lines.slice(-4)).toEqual([
      "  fails.test.mjs: first 1 passed, 1 failed; then, alone, 1 passed, 1 failed",
      "FAILED ONCE fails.test.mjs > c: no",
      "FAILED fails.test.mjs > c: no",
      "2 passed, 1 failed",
    ]);
    expect(exitCode).toBe(1);
  });

  test("a unit test has its second run too, and an error without a file fails the run", async () => {
    await mkdir(join(folder, "unit"));
    const unit = await run({ "unit/once.test.mjs": failingOnce, "unit/fails.test.mjs": failing }, "runner");
    expect(unit).toMatchObject({ line: "2 passed, 1 failed", exitCode: 1 });

    const setup = `export const setup = () => { throw new Error("no"); };`;
    expect(await run({ "setup.mjs": setup }, "runner")).toMatchObject({ exitCode: 1 });
  });
});
