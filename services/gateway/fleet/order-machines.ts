import type { RankReason } from "#shared/fleet/shown-fleet.ts";
import { expectedTimes, type Load, type Speed } from "./expected-time.ts";

/** A machine that can serve the request, with all criteria of its order. */
export interface Able {
  readonly status: "present" | "suspect";
  readonly breakerOpen: boolean;
  /** True if the machine said busy again and again although its presence reported a free slot. */
  readonly contradicts?: boolean | undefined;
  /** True if the model's context window there holds the prompt, as far as its length can be estimated. */
  readonly windowHolds: boolean;
  readonly load: Load;
  readonly speed: Speed | undefined;
  /** True if the machine ran the earlier part of this conversation, and may still have it cached. */
  readonly warm: boolean;
}

export interface Ranked<Machine extends Able> {
  readonly machine: Machine;
  /** The criterion that counts against the machine, or that decides its order among equals. */
  readonly reason: RankReason | undefined;
}

/**
 * Limits the machines drawn at random. The rest of a large fleet is sorted by time, since no request asks that many.
 */
const drawnMax = 32;

/**
 * Sorts machines into the order in which they are asked. Machines without an open breaker come first, then machines
 * heard lately, then machines whose window holds the prompt. Then come machines with a free slot, then with room in
 * their queue, then the others. Then come the faster machines. Among equals warm machines come first, then the less
 * loaded of two drawn at random. Gateways that do not know of each other therefore do not all choose the same machine.
 */
export function orderMachines<Machine extends Able>(
  machines: readonly Machine[],
  random: () => number,
): readonly Ranked<Machine>[] {
  const [only] = machines;
  if (machines.length === 1 && only !== undefined) {
    return [{ machine: only, reason: against(only) ?? (only.warm ? "warm" : undefined) }];
  }
  return groupsBy(machines, standing).flatMap((group) => {
    const times = expectedTimes(group);
    const timed = group.map((machine, place): Timed<Machine> => ({ machine, timeMs: times[place] ?? Infinity }));
    const fastestMs = timed.reduce((least, { timeMs }) => Math.min(least, timeMs), Infinity);
    // A machine counts as slower than the fastest when it takes twice as long; less is noise.
    const octave = ({ timeMs }: Timed<Machine>): number => Math.floor(Math.log2(timeMs / fastestMs));
    return groupsBy(timed, octave).flatMap((alike, place) => {
      return drawWarmFirst(alike, random).map(({ machine }) => ({
        machine,
        reason:
          against(machine) ?? (place > 0 ? "slower" : machine.warm ? "warm" : alike.length > 1 ? "drawn" : undefined),
      }));
    });
  });
}

interface Timed<Machine> {
  readonly machine: Machine;
  readonly timeMs: number;
}

/** Returns the penalty of a machine. Each criterion outweighs all those after it. */
function standing({ breakerOpen, contradicts = false, status, windowHolds, load }: Able): number {
  const room = { slot: 0, queue: 1, none: 2 }[load.room];
  return (breakerOpen || contradicts ? 12 : 0) + (status === "suspect" ? 6 : 0) + (windowHolds ? 0 : 3) + room;
}

function against({ breakerOpen, contradicts = false, status, windowHolds, load }: Able): RankReason | undefined {
  if (breakerOpen) return "breaker";
  if (contradicts) return "contradicts";
  if (status === "suspect") return "suspect";
  if (!windowHolds) return "small_window";
  if (load.room === "none") return "full";
  return load.room === "queue" ? "busy" : undefined;
}

/** Groups the items by equal measure, the smallest measure first. Nearly always there is one group. */
function groupsBy<Each>(all: readonly Each[], measure: (each: Each) => number): readonly (readonly Each[])[] {
  const measures = all.map(measure);
  if (measures.every((each) => each === measures[0])) return [all];
  const groups = new Map<number, Each[]>();
  all.forEach((each, place) => groups.getOrInsertComputed(measures[place] ?? 0, () => []).push(each));
  return [...groups].toSorted(([one], [other]) => one - other).map(([, group]) => group);
}

function drawWarmFirst<Machine extends Able>(alike: readonly Timed<Machine>[], random: () => number) {
  const warm = alike.filter(({ machine }) => machine.warm);
  if (warm.length === 0) return drawPairs(alike, random);
  const cold = alike.filter(({ machine }) => !machine.warm);
  return [...drawPairs(warm, random), ...drawPairs(cold, random)];
}

/**
 * Orders machines by the power of two choices until none is left. Of a large fleet only `drawnMax` are drawn, more than
 * are ever asked; the rest is sorted by time.
 */
function drawPairs<Machine>(machines: readonly Timed<Machine>[], random: () => number): readonly Timed<Machine>[] {
  if (machines.length < 2) return machines;
  const order: Timed<Machine>[] = [];
  const left = machines.slice();
  while (left.length > 0 && order.length < drawnMax) {
    const first = draw(left.length, random);
    const second = left.length === 1 ? first : (first + 1 + draw(left.length - 1, random)) % left.length;
    const [one, other, last] = [left[first], left[second], left.pop()];
    if (one === undefined || other === undefined || last === undefined) break;
    const place = other.timeMs < one.timeMs ? second : first;
    order.push(place === second ? other : one);
    if (place < left.length) left[place] = last;
  }
  return left.length === 0 ? order : [...order, ...left.toSorted((one, other) => one.timeMs - other.timeMs)];
}

function draw(count: number, random: () => number): number {
  return Math.min(count - 1, Math.floor(random() * count));
}
