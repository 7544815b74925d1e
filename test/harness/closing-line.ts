import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestCase, TestModule, TestSuite } from "vitest/node";

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A test file's own part of the outcome. */
export interface FileOutcome extends Outcome {
  readonly path: string;
  /** A line for each failure: the title of the test or suite and the first line of its error. */
  readonly failures: readonly string[];
}

/** The report that `run-tests.ts` reads: the outcome of the run, and of each test file in it. */
export interface RunReport extends Outcome {
  readonly files: readonly FileOutcome[];
}

/** Names the file that takes the report of a run; the closing line is then left to the process that set it. */
export const reportPathVariable = "TEST_REPORT_PATH";

/**
 * Ends the output with one line that a script can read: `N passed, N failed`, and `, N skipped` when there are any.
 * The line is written when the process exits, since other reporters and teardowns print until then. It never says
 * `0 failed` when the process exits with a failure.
 */
export class ClosingLine implements Reporter {
  readonly #reportPath = process.env[reportPathVariable];
  #report: RunReport = { passed: 0, failed: 0, skipped: 0, files: [] };

  onInit(): void {
    process.once("exit", (exitCode) => {
      const failed = exitCode === 0 ? this.#report.failed : Math.max(this.#report.failed, 1);
      const report = { ...this.#report, failed };
      if (this.#reportPath === undefined) process.stdout.write(`${closingLine(report)}\n`);
      else writeFileSync(this.#reportPath, JSON.stringify(report));
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const files = modules.map((module) => outcomeOfFile(module, unhandledErrors));
    const paths = new Set(modules.map((module) => module.moduleId));
    const ownerless = unhandledErrors.filter((error) => !paths.has(pathOf(error) ?? "")).length;
    this.#report = { ...sumOf([...files, { passed: 0, failed: ownerless, skipped: 0 }]), files };
  }
}

export function closingLine({ passed, failed, skipped }: Outcome): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

export function sumOf(outcomes: readonly Outcome[]): Outcome {
  const sum = (key: keyof Outcome): number => outcomes.reduce((total, outcome) => total + outcome[key], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

/**
 * A file or suite with an error of its own (it did not load, a hook of it failed) and an uncaught error count as one
 * failure each, since no test reports them. A test without a result did not pass either.
 */
function outcomeOfFile(module: TestModule, unhandledErrors: readonly unknown[]): FileOutcome {
  const tests = [...module.children.allTests()];
  const inState = (state: string) => tests.filter((test) => test.result().state === state);
  const passed = inState("passed").length;
  const skipped = inState("skipped").length;
  const failures = [
    ...tests.filter((test) => !["passed", "skipped"].includes(test.result().state)).map(failureOfTest),
    ...[module, ...module.children.allSuites()].flatMap(failureOfSuite),
    ...unhandledErrors
      .filter((error) => pathOf(error) === module.moduleId)
      .map((error) => firstLine("uncaught", error)),
  ];
  return {
    path: relative(module.project.config.root, module.moduleId),
    passed,
    skipped,
    failed: failures.length,
    failures,
  };
}

function failureOfTest(test: TestCase): string {
  return firstLine(test.fullName, test.result().errors?.[0] ?? "no result");
}

function failureOfSuite(suite: TestModule | TestSuite): string[] {
  const [error] = suite.errors();
  return error === undefined ? [] : [firstLine(suite.type === "module" ? "the file" : suite.fullName, error)];
}

function firstLine(title: string, error: unknown): string {
  const { message = String(error) } = error as { message?: string };
  return `${title}: ${message.split("\n", 1)[0]}`;
}

/** The test file that ran when the error was thrown, if vitest knows it. */
function pathOf(error: unknown): string | undefined {
  const { VITEST_TEST_PATH: path } = error as { VITEST_TEST_PATH?: string };
  return path;
}
