import type { Measurement } from "../measurement.ts";

/** Median, least and most over rounds, in the unit of what was measured. */
export interface RoundSpread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Which measurement of a round is meant. */
export interface Window {
  readonly scenario: string;
  readonly variant: string;
}

/** A round that does not count, and why. */
export interface LeftOut extends Window {
  readonly round: number;
  readonly why: string;
  /** The variant gave wrong answers, or refused what it had to serve: its own fault, and no mood of the machine. */
  readonly isBroken: boolean;
  /** The machine's host gave time to others, and that is all. */
  readonly isHosts?: boolean;
}

export interface OverRounds {
  /** Missing where no round counts. */
  readonly spread?: RoundSpread;
  readonly rounds: number;
  readonly leftOut: readonly LeftOut[];
  /** The host gave much time to others in every round, so that those had to count after all. */
  readonly isDisturbed?: boolean;
}

/** What the host may take from a window before nobody can say whose time it was. */
export const stealShareMax = 0.02;

/** Where refusals are what is measured; anywhere else they are cheap answers that were not asked for. */
const refusing: ReadonlySet<string> = new Set(["overload-served", "overload-refused"]);

/** Why a measurement says nothing about its variant's cost, or little where only the host was at fault. */
export function disturbance(measurement: Measurement): Pick<LeftOut, "why" | "isBroken" | "isHosts"> | undefined {
  const { scenario, bad, firstBad, refused, stealShare } = measurement;
  if (bad > 0)
    return { why: `cut or wrong answers: ${bad}${firstBad === "" ? "" : `, the first: ${firstBad}`}`, isBroken: true };
  const refusals = Object.entries(refused).filter(([, count]) => count > 0);
  if (refusals.length > 0 && !refusing.has(scenario)) {
    const counts = refusals.map(([status, count]) => `${count} with ${status}`);
    return { why: `requests were refused: ${counts.join(", ")}`, isBroken: true };
  }
  if (stealShare > stealShareMax) {
    const why = `the host gave ${(stealShare * 100).toFixed(1)} % of the time to others`;
    return { why, isBroken: false, isHosts: true };
  }
  return undefined;
}

/**
 * One figure over all rounds, made in each round of the windows that it needs. What a machine can do changes from round to
 * round and hardly within one, so figures are made within rounds first and compared afterwards. A round counts when all
 * of its windows are there, undisturbed, and have the figure; where the host disturbed every round, those count that it
 * alone disturbed, and it is said. Without `roundsPlayed` those are meant in which any of the windows is.
 */
export function overRounds(
  measurements: readonly Measurement[],
  needs: readonly Window[],
  figure: (...windows: readonly Measurement[]) => number | undefined,
  roundsPlayed?: readonly number[],
): OverRounds {
  const inNeed = ({ scenario, variant }: Window, measured: Measurement): boolean =>
    measured.scenario === scenario && measured.variant === variant;
  const ours = measurements.filter((measured) => needs.some((need) => inNeed(need, measured)));
  const rounds = [...new Set(roundsPlayed ?? ours.map(({ round }) => round))].toSorted((a, b) => a - b);
  const values: number[] = [];
  const disturbedValues: number[] = [];
  const leftOut: LeftOut[] = [];
  for (const round of rounds) {
    const inRound = needs.map((need) => ours.find((measured) => measured.round === round && inNeed(need, measured)));
    const lacks = needs.flatMap((need, at) => {
      const measured = inRound[at];
      const lack = measured === undefined ? { why: "was not measured", isBroken: false } : disturbance(measured);
      return lack === undefined ? [] : [{ ...need, round, ...lack }];
    });
    leftOut.push(...lacks);
    if (!lacks.every(isOnlyHosts)) continue;
    const value = figure(...inRound.filter((measured) => measured !== undefined));
    const [first] = needs;
    if (value !== undefined && Number.isFinite(value)) (lacks.length === 0 ? values : disturbedValues).push(value);
    else if (first !== undefined) leftOut.push({ ...first, round, why: "has no such figure", isBroken: false });
  }
  if (values.length > 0) return { spread: spreadOf(values), rounds: values.length, leftOut };
  if (disturbedValues.length === 0) return { rounds: 0, leftOut };
  return { spread: spreadOf(disturbedValues), rounds: disturbedValues.length, leftOut, isDisturbed: true };
}

function isOnlyHosts({ isHosts = false }: Pick<LeftOut, "isHosts">): boolean {
  return isHosts;
}

/** All windows that do not count, and those that other rounds of their scenario have and theirs has not. */
export function leftOutOf(measurements: readonly Measurement[]): LeftOut[] {
  const windows = new Map(
    measurements.map(({ scenario, variant }) => [JSON.stringify([scenario, variant]), { scenario, variant }]),
  );
  return [...windows.values()].flatMap((window) => {
    const rounds = measurements.filter(({ scenario }) => scenario === window.scenario).map(({ round }) => round);
    return overRounds(measurements, [window], () => 0, rounds).leftOut;
  });
}

export function spreadOf(values: readonly number[]): RoundSpread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [below, above] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  if (below === undefined || above === undefined) throw new Error("a spread needs at least one value");
  return { median: (below + above) / 2, min: Math.min(...values), max: Math.max(...values) };
}
