import type { Measurement } from "../measurement.ts";
import { isWithin } from "./bound.ts";
import { overRounds, type OverRounds } from "./over-rounds.ts";
import { isOwn } from "./own-variant.ts";
import { reachedByFloor, type FloorsFigure } from "./reached-by-floor.ts";
import { targets as allTargets, type Target } from "./targets.ts";

export interface JudgedTarget extends OverRounds {
  readonly target: Target;
  readonly verdict: "met" | "missed" | "not measured";
  /** Why it was not measured, or was missed although the median is within the bound, or is to be trusted less. */
  readonly why?: string;
  /** Trunkline itself gave wrong answers, or refused what it had to serve, in some round. */
  readonly isBroken: boolean;
  readonly floor?: FloorsFigure | undefined;
}

/** So many rounds are what a verdict is asked of. */
export const roundsMin = 5;

/**
 * Holds the medians against the bounds. Rounds in which Trunkline's own answers were wrong count no less for being left
 * out of the median: their targets are missed, however cheap the wrong answers were.
 */
export function judgeTargets(
  measurements: readonly Measurement[],
  targets: readonly Target[] = allTargets,
): JudgedTarget[] {
  return targets.map((target) => ({
    ...judge(measurements, target),
    floor: reachedByFloor(measurements, target),
  }));
}

function judge(measurements: readonly Measurement[], target: Target): JudgedTarget {
  const figure = overRounds(measurements, target.needs, target.figure);
  const broken = figure.leftOut.find(({ isBroken, variant }) => isBroken && isOwn(variant));
  const isBroken = broken !== undefined;
  if (isBroken) return { target, ...figure, verdict: "missed", isBroken, why: `round ${broken.round}: ${broken.why}` };
  if (figure.spread === undefined) {
    return { target, ...figure, verdict: "not measured", isBroken, why: whyNotMeasured(measurements, target, figure) };
  }
  const verdict = isWithin(figure.spread.median, target.bound) ? "met" : "missed";
  const judged = { target, ...figure, verdict, isBroken } as const;
  const asked = target.rounds ?? roundsMin;
  const doubts = [
    ...(figure.rounds < asked ? [`${figure.rounds} of ${asked} rounds`] : []),
    ...(figure.isDisturbed === true ? ["the host disturbed all of them"] : []),
  ];
  return doubts.length === 0 ? judged : { ...judged, why: doubts.join("; ") };
}

function whyNotMeasured(measurements: readonly Measurement[], { needs }: Target, { leftOut }: OverRounds): string {
  const never = needs.filter(
    (need) => !measurements.some(({ scenario, variant }) => scenario === need.scenario && variant === need.variant),
  );
  if (never.length > 0) return `no ${never.map(({ scenario, variant }) => `${variant} in ${scenario}`).join(", no ")}`;
  const [first] = leftOut;
  return first === undefined ? "no rounds" : `${first.variant} in ${first.scenario}: ${first.why}`;
}
