import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A test file's own part of the outcome. */
export interface FileOutcome extends Outcome {
  readonly path: string;
  readonly project: string;
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
  const tests = [...module.children.allTests()].map((test) => test.result().state);
  const suites = [module, ...module.children.allSuites()];
  const passed = tests.filter((state) => state === "passed").length;
  const skipped = tests.filter((state) => state === "skipped").length;
  const suitesFailed = suites.filter((suite) => suite.errors().length > 0).length;
  const uncaught = unhandledErrors.filter((error) => pathOf(error) === module.moduleId).length;
  return {
    path: relative(module.project.config.root, module.moduleId),
    project: module.project.name,
    passed,
    skipped,
    failed: tests.length - passed - skipped + suitesFailed + uncaught,
  };
}

/** The test file that ran when the error was thrown, if vitest knows it. */
function pathOf(error: unknown): string | undefined {
  const { VITEST_TEST_PATH: path } = error as { VITEST_TEST_PATH?: string };
  return path;
}
