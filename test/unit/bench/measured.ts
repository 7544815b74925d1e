import type { Measurement } from "../../bench/measurement.ts";

/** A measurement of a round in which all went well, but for what is given. */
export function measured(given: Partial<Measurement>): Measurement {
  return {
    scenario: "whole-32",
    variant: "trunkline",
    round: 1,
    windowS: 3,
    requests: 1_000,
    refused: {},
    bad: 0,
    firstBad: "",
    chunks: 0,
    cpuUs: {},
    rssKb: {},
    stealShare: 0,
    ...given,
  };
}

/** One measurement for each cost, in rounds from 1 on: so many µs a request. */
export function costing(variant: string, costs: readonly number[], given: Partial<Measurement> = {}): Measurement[] {
  return costs.map((us, at) => measured({ variant, round: at + 1, cpuUs: { gateway: us * 1_000 }, ...given }));
}
