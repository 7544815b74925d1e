import type { RankReason } from "#shared/fleet/shown-fleet.ts";
import type { Cost, Load } from "./expected-cost.ts";

/** A machine that can serve the request, with all criteria of its order. */
export interface Able {
  readonly status: "present" | "suspect";
  readonly breakerOpen: boolean;
  /** True if the machine said busy again and again although its presence reported a free slot. */
  readonly contradicts?: boolean | undefined;
  /** True if the model's context window there holds the prompt, as far as its length can be estimated. */
  readonly windowHolds: boolean;
  readonly load: Load;
  readonly cost: Cost;
  /** Tokens of the prompt that the machine is expected to have cached. */
  readonly cachedTokens: number;
}

export interface Ranked<Machine extends Able> {
  readonly machine: Machine;
  /** The criterion that counts against the machine, or that decides its order among equals. */
  readonly reason: RankReason | undefined;
}

/** Costs that differ by less are equal: they are made of measured times. */
const alikeMs = 5;

/**
 * A machine with a part of the prompt cached counts as equal to the cheapest one while it costs at most this much more, and
 * this many times what the cache saves. A prompt that a second machine computes takes room in that machine's cache from other
 * prompts, which no cost counts.
 */
const excessMsMax = 200;
const excessForSaved = 4;

/**
 * Sorts machines into the order in which they are asked. Machines without an open breaker come first, then machines
 * heard lately, then machines whose window holds the prompt, then machines whose queue is not full. Among those the
 * least expected cost comes first, and of those that count as equal the one with most of the prompt cached. Others are
 * drawn, so that gateways do not all choose the same machine.
 */
export function orderMachines<Machine extends Able>(
  machines: readonly Machine[],
  random: () => number,
): readonly Ranked<Machine>[] {
  const groups = Map.groupBy(machines, penaltyOf);
  const penalties = [...groups.keys()].toSorted((one, other) => one - other);
  return penalties.flatMap((penalty) => orderAlike(groups.get(penalty) ?? [], random));
}

/** Sorts machines with one penalty. */
function orderAlike<Machine extends Able>(group: readonly Machine[], random: () => number): Ranked<Machine>[] {
  const leastMs = Math.min(...group.map(({ cost }) => cost.totalMs));
  const drawn = group.map((machine) => {
    const { cost, cachedTokens } = machine;
    const excessMs = Math.max(0, cost.totalMs - leastMs - alikeMs);
    const isNear = excessMs <= Math.min(excessMsMax, excessForSaved * cost.savedMs);
    return { machine, excessMs, isNear, cachedTokens: isNear ? cachedTokens : -1, draw: random() };
  });
  drawn.sort(
    (one, other) => other.cachedTokens - one.cachedTokens || one.excessMs - other.excessMs || one.draw - other.draw,
  );
  return drawn.map(({ machine, isNear }) => ({ machine, reason: rankReasonOf(machine, isNear, group.length) }));
}

/** Returns the penalty of a machine. Each criterion outweighs all those after it. */
function penaltyOf({ breakerOpen, contradicts = false, status, windowHolds, load }: Able): number {
  const isFull = load.room === "none";
  return (
    (breakerOpen || contradicts ? 8 : 0) + (status === "suspect" ? 4 : 0) + (windowHolds ? 0 : 2) + (isFull ? 1 : 0)
  );
}

function rankReasonOf(machine: Able, isNear: boolean, machines: number): RankReason | undefined {
  const { breakerOpen, contradicts = false, status, windowHolds, load, cachedTokens } = machine;
  if (breakerOpen) return "breaker";
  if (contradicts) return "contradicts";
  if (status === "suspect") return "suspect";
  if (!windowHolds) return "small_window";
  if (load.room === "none") return "full";
  if (load.room === "queue") return "busy";
  if (!isNear) return "slower";
  if (cachedTokens > 0) return "warm";
  return machines > 1 ? "drawn" : undefined;
}
