import type { Reporter, TestModule } from "vitest/node";

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/**
 * Ends the output with one line that a script can read: `N passed, N failed`, and `, N skipped` when there are any.
 * It is written when the process exits, since only then nothing else can follow, whatever other reporters and
 * teardowns still say; and it never says `0 failed` when the process exits with a failure.
 */
export class ClosingLine implements Reporter {
  #outcome: Outcome = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    process.once("exit", (exitCode) => {
      const failed = exitCode === 0 ? this.#outcome.failed : Math.max(this.#outcome.failed, 1);
      process.stdout.write(`${closingLine({ ...this.#outcome, failed })}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    this.#outcome = outcomeOf(modules, unhandledErrors);
  }
}

export function closingLine({ passed, failed, skipped }: Outcome): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

/**
 * A file or suite with an error of its own (it did not load, a hook of it failed) and an error that nobody caught count
 * as a failure each: no test says so in their place. A test that came to no result did not pass either.
 */
function outcomeOf(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): Outcome {
  const tests = modules.flatMap((module) => [...module.children.allTests()]).map((test) => test.result().state);
  const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
  const passed = tests.filter((state) => state === "passed").length;
  const skipped = tests.filter((state) => state === "skipped").length;
  const suitesFailed = suites.filter((suite) => suite.errors().length > 0).length;
  return { passed, skipped, failed: tests.length - passed - skipped + suitesFailed + unhandledErrors.length };
}
