import type { Measurement } from "../../bench/measurement.ts";
import type { BenchResults } from "../../bench/report/results.ts";

/** What a run of one scenario would have found out, but for what is given. */
export function resultsOf(measurements: readonly Measurement[], given: Partial<BenchResults> = {}): BenchResults {
  const names = [...new Set(measurements.map(({ variant }) => variant))];
  return {
    format: 1,
    measuredAt: "2026-01-02T03:04:05.000Z",
    machine: { cpu: "Some CPU", cores: 2, memoryGb: 16, kernel: "Linux 6.1.0 x64" },
    versions: { node: "26.0.0" },
    settings: { rounds: 2 },
    scenarios: [{ name: "whole-32", title: "Small answers", unit: "request" }],
    variants: names.map((name) => ({ name, title: `what ${name} is`, version: "1.0.0" })),
    measurements,
    failures: [],
    growths: [],
    ...given,
  };
}
