import type { Measurement } from "../measurement.ts";
import { isWithin } from "./bound.ts";
import { overRounds, type RoundSpread } from "./over-rounds.ts";
import { isOwn, ownVariant } from "./own-variant.ts";
import type { Target } from "./targets.ts";

const floor = "bare";

/** What the bare pipeline reaches of a target that Trunkline is held to. */
export interface FloorsFigure {
  readonly spread: RoundSpread;
  /** It misses the bound itself, though it does nothing but carry bytes: on this machine the bound asks too much of the design. */
  readonly isBeyond: boolean;
}

/**
 * The same figure with the floor of the design in Trunkline's place, in the same rounds: with two gateways where Trunkline
 * has two. Nothing where the floor is what Trunkline is held against, or has no such set-up.
 */
export function reachedByFloor(measurements: readonly Measurement[], target: Target): FloorsFigure | undefined {
  if (target.needs.some(({ variant }) => variant === floor)) return undefined;
  const needs = target.needs.map(({ scenario, variant }) => ({
    scenario,
    variant: isOwn(variant) ? variant.replace(ownVariant, floor) : variant,
  }));
  const { spread } = overRounds(measurements, needs, target.figure);
  return spread && { spread, isBeyond: !isWithin(spread.median, target.bound) };
}
