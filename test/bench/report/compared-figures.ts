import type { Measurement } from "../measurement.ts";
import {
  countUnitOf,
  deliveredShare,
  pathCost,
  residentKb,
  unitsOf,
  type CountedScenario,
  type LatencyName,
} from "./cost.ts";
import type { Figure } from "./paired-ratios.ts";

/** A figure by which variants are compared, in the words of tables. */
export interface ComparedFigure {
  readonly name: string;
  readonly unit: string;
  readonly isBetter: "less" | "more";
  readonly of: Figure;
}

export const latencyTitles: Readonly<Record<LatencyName, string>> = {
  total: "whole answer",
  firstByte: "first byte",
  oneWay: "one way of a chunk",
  refusedTotal: "refusal",
};

/** The times by which a scenario says how fast it was. */
export function latencyOf({ unit, latency }: CountedScenario): LatencyName {
  return latency ?? (unit === "chunk" ? "oneWay" : "total");
}

export function cpuFigure(scenario: CountedScenario): ComparedFigure {
  const unit = countUnitOf(scenario);
  return { name: `CPU per ${unit}`, unit: "µs", isBetter: "less", of: (measured) => pathCost(measured, unit) };
}

export function latencyFigure(latency: LatencyName, percentile: "p50" | "p99"): ComparedFigure {
  const of = (measured: Measurement): number | undefined => {
    // The first byte of an answer that comes whole is the answer.
    if (latency === "firstByte" && measured.chunks === 0) return undefined;
    const spread = measured[latency];
    return spread === undefined || spread.count === 0 ? undefined : spread[percentile];
  };
  return { name: `${latencyTitles[latency]}, ${percentile}`, unit: "µs", isBetter: "less", of };
}

export function rateFigure({ unit }: CountedScenario): ComparedFigure {
  const of: Figure = (measured) => unitsOf(measured, unit) / measured.windowS;
  return { name: `${unit}s per s`, unit: "/s", isBetter: "more", of };
}

export const deliveredFigure: ComparedFigure = {
  name: "delivered of offered",
  unit: "",
  isBetter: "more",
  of: deliveredShare,
};

export const memoryFigure: ComparedFigure = {
  name: "resident memory",
  unit: "KB",
  isBetter: "less",
  of: (measured) => residentKb(measured),
};

/** All that a scenario is compared by; where chunks are paced, how many come is not a matter of speed. */
export function comparedFigures(scenario: CountedScenario, measurements: readonly Measurement[]): ComparedFigure[] {
  if (countUnitOf(scenario) === "second") return [cpuFigure(scenario), memoryFigure];
  const isPaced = measurements.some(
    (measured) => measured.scenario === scenario.name && measured.offeredChunks !== undefined,
  );
  const latencies = (Object.keys(latencyTitles) as LatencyName[]).flatMap((latency) => [
    latencyFigure(latency, "p50"),
    latencyFigure(latency, "p99"),
  ]);
  return [cpuFigure(scenario), isPaced ? deliveredFigure : rateFigure(scenario), ...latencies, memoryFigure];
}
