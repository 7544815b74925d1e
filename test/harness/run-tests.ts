/**
 * Runs vitest with the given arguments. Files that fail are run once more, alone: a busy machine may break a test that
 * stands on servers and times, and it rarely does so twice. Both outcomes are printed, and a file that fails twice fails
 * the run. Each failure is named once more at the end: `FAILED ONCE` of a first run, `FAILED` of the last. The last line
 * is `N passed, N failed` of the final outcomes.
 *
 * usage: node test/harness/run-tests.ts [folders and options of vitest]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  closingLine,
  reportPathVariable,
  sumOf,
  type FileOutcome,
  type Outcome,
  type RunReport,
} from "./closing-line.ts";

/** More failed files than these are no accident of a busy machine, and to run them alone takes too long. */
const rerunFilesMax = 20;
const vitestPath = join(import.meta.dirname, "../../node_modules/vitest/vitest.mjs");

const given = process.argv.slice(2);
const first = await runVitest(given);
const failed = first.files.filter((file) => file.failed > 0);
let final: Outcome = first;
let last = failed;
if (failed.length > rerunFilesMax) {
  console.log(`${failed.length} files failed: too many for a second run.`);
} else if (failed.length > 0) {
  console.log(`\nSecond run, alone, of ${failed.map(({ path }) => path).join(", ")}`);
  const { root, paths } = placesOf(given, failed);
  const second = await runVitest([...root, "--maxWorkers=1", ...paths]);
  const outcomes = failed.map((file) => ({ file, again: second.files.find(({ path }) => path === file.path) ?? file }));
  console.log("Files that needed a second run:");
  for (const { file, again } of outcomes) {
    console.log(`  ${file.path}: first ${closingLine(file)}; then, alone, ${closingLine(again)}`);
  }
  last = outcomes.map(({ again }) => again);
  nameFailures("FAILED ONCE", failed);
  const others = first.files.filter((file) => !failed.includes(file));
  // Failures without a file of their own stay failures.
  const ownerless = first.failed - sumOf(first.files).failed;
  const secondOwnerless = second.failed - sumOf(second.files).failed;
  final = sumOf([
    ...others,
    ...outcomes.map(({ again }) => again),
    { passed: 0, failed: ownerless + secondOwnerless, skipped: 0 },
  ]);
}
nameFailures("FAILED", last);
console.log(closingLine(final));
process.exitCode = final.failed === 0 ? 0 : 1;

function nameFailures(mark: string, files: readonly FileOutcome[]): void {
  for (const { path, failures } of files) {
    for (const failure of failures) console.log(`${mark} ${path} > ${failure}`);
  }
}

/** Files to run once more. `--root` is the only option of the first run that a second run needs. */
function placesOf(args: readonly string[], files: readonly { readonly path: string }[]) {
  const root = args.filter((arg) => arg.startsWith("--root="));
  const folder = resolve(root[0]?.slice("--root=".length) ?? ".");
  return { root, paths: files.map(({ path }) => join(folder, path)) };
}

/** Runs vitest to its end. A run without a report, such as a killed one, counts as one failure. */
async function runVitest(args: readonly string[]): Promise<RunReport> {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-tests-"));
  const reportPath = join(folder, "report.json");
  const env = { ...process.env, [reportPathVariable]: reportPath };
  const child = spawn(process.execPath, [vitestPath, "run", ...args], { stdio: "inherit", env });
  await new Promise((done) => child.once("close", done));
  try {
    return JSON.parse(readFileSync(reportPath, "utf8")) as RunReport;
  } catch {
    return { passed: 0, failed: 1, skipped: 0, files: [] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
