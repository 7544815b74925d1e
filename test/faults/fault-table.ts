import type { Reporter, TestModule } from "vitest/node";

/** Prints what every scenario came to, by row: its outcomes, and the time from the fault to the end of the last request. */
export class FaultTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules
      .flatMap((module) => [...module.children.allTests()])
      .flatMap((test) => {
        const { scenario } = test.meta();
        return scenario === undefined ? [] : [{ scenario, holds: test.ok() }];
      })
      .toSorted((one, other) => (one.scenario.rows[0] ?? 0) - (other.scenario.rows[0] ?? 0))
      .map(({ scenario, holds }) => {
        const { rows, guarantee, seed, outcomes = [], tookMs } = scenario;
        const took = tookMs === undefined ? "" : `${(tookMs / 1_000).toFixed(2)} s`;
        const columns = [
          rows.join(", ").padEnd(7),
          String(seed).padStart(4),
          holds ? "holds" : "FAILS",
          took.padStart(8),
        ];
        return [...columns, outcomes.join(", ").padEnd(28), guarantee].join("  ");
      });
    if (lines.length === 0) return;
    console.log(
      ["", "row      seed  it     after     outcomes                      guarantee", ...lines, ""].join("\n"),
    );
  }
}
