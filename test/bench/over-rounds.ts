import type { Measurement } from "./measurement.ts";

export type Figure = (measured: Measurement) => number | undefined;

/** Median, least and most over the rounds that count. */
export interface RoundSpread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface OverRounds {
  /** Missing when no round counts. */
  readonly spread?: RoundSpread;
  readonly rounds: number;
  /** Why rounds do not count, one line each. */
  readonly leftOut: readonly string[];
}

/** A host that gives more than this share of a window to other machines makes its figures useless. */
export const stealShareMax = 0.02;

/**
 * One figure of a variant over all rounds, or its ratio to the same figure of `over` in the same round: a machine changes
 * from round to round and hardly within one. Rounds with wrong or refused answers do not count. Rounds that the host
 * disturbed count only when there are no others.
 */
export function overRounds(
  measurements: readonly Measurement[],
  wanted: { readonly scenario: string; readonly variant: string; readonly over?: string; readonly figure: Figure },
): OverRounds {
  const { scenario, variant, over, figure } = wanted;
  const names = over === undefined ? [variant] : [variant, over];
  const inScenario = measurements.filter((one) => one.scenario === scenario && names.includes(one.variant));
  const rounds = [...new Set(inScenario.map(({ round }) => round))].toSorted((a, b) => a - b);
  const [calm, disturbed]: [number[], number[]] = [[], []];
  const leftOut: string[] = [];
  for (const round of rounds) {
    const windows = names.map((name) => inScenario.find((one) => one.variant === name && one.round === round));
    const faults = windows.map((window) => (window === undefined ? "was not measured" : faultOf(window)));
    const at = faults.findIndex((fault) => fault !== undefined);
    if (at >= 0) {
      leftOut.push(`round ${round}: ${names[at]} ${faults[at]}`);
      continue;
    }
    const [own, other] = windows.map((window) => window && figure(window));
    const value = over === undefined ? own : own !== undefined && other ? own / other : undefined;
    if (value === undefined) continue;
    const isCalm = windows.every((window) => (window?.stealShare ?? 0) <= stealShareMax);
    (isCalm ? calm : disturbed).push(value);
    if (!isCalm) leftOut.push(`round ${round}: the host gave much of its time to others`);
  }
  const counted = calm.length > 0 ? calm : disturbed;
  if (counted.length === 0) return { rounds: 0, leftOut };
  return { spread: spreadOf(counted), rounds: counted.length, leftOut };
}

/** Why a measurement says nothing about the cost of its variant. */
export function faultOf({ bad, firstBad, refused }: Measurement): string | undefined {
  if (bad > 0) return `gave ${bad} wrong answers; the first: ${firstBad}`;
  const statuses = Object.entries(refused).filter(([, count]) => count > 0);
  if (statuses.length === 0) return undefined;
  return `refused requests: ${statuses.map(([status, count]) => `${count} with ${status}`).join(", ")}`;
}

export function spreadOf(values: readonly number[]): RoundSpread {
  const sorted = values.toSorted((a, b) => a - b);
  const [below = 0, above = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  return { median: (below + above) / 2, min: Math.min(...values), max: Math.max(...values) };
}
