import type { Measurement } from "../measurement.ts";
import { overRounds, type OverRounds } from "./over-rounds.ts";

export type Figure = (measured: Measurement) => number | undefined;

/** A figure of one variant over the same figure of another in the same round. */
export function pairedRatios(
  measurements: readonly Measurement[],
  pair: { readonly scenario: string; readonly variant: string; readonly baseline: string; readonly figure: Figure },
): OverRounds {
  const { scenario, variant, baseline, figure } = pair;
  const needs = [variant, baseline].map((name) => ({ scenario, variant: name }));
  return overRounds(measurements, needs, (own: Measurement, other: Measurement) => ratio(figure(own), figure(other)));
}

/** Nothing where either is missing, or nothing to divide by. */
export function ratio(own: number | undefined, other: number | undefined): number | undefined {
  return own === undefined || other === undefined || other === 0 ? undefined : own / other;
}
