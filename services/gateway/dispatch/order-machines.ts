import type { RankReason } from "#shared/fleet/shown-route.ts";
import { expectedTimes, type Load, type Speed } from "./expected-time.ts";

/** A machine that can do what is asked, with all that speaks for it and against it. */
export interface Able {
  readonly status: "present" | "suspect";
  readonly breakerOpen: boolean;
  /** Whether the model's window there holds the prompt, as far as that can be estimated. */
  readonly windowHolds: boolean;
  readonly load: Load;
  readonly speed: Speed | undefined;
  /** It did the earlier part of this conversation, and may still know it. */
  readonly warm: boolean;
}

export interface Ranked<Machine extends Able> {
  readonly machine: Machine;
  /** What is against it, or what puts it where it is among those that are as good. */
  readonly reason: RankReason | undefined;
}

/** The rest of a large fleet comes by time: so many are never asked about one request. */
const drawnMax = 32;

/**
 * Puts machines in the order in which they are to be asked: those without a breaker, heard lately, with a window that
 * is large enough; then those with a free slot, with room in their queue, and without; then the faster. Among those that
 * are alike in all this the warm ones come first, and then the less loaded of two that are drawn: gateways that do not
 * know of each other do not all choose the same.
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

/** Larger is worse, and each criterion outweighs all those after it. */
function standing({ breakerOpen, status, windowHolds, load }: Able): number {
  const room = { slot: 0, queue: 1, none: 2 }[load.room];
  return (breakerOpen ? 12 : 0) + (status === "suspect" ? 6 : 0) + (windowHolds ? 0 : 3) + room;
}

function against({ breakerOpen, status, windowHolds, load }: Able): RankReason | undefined {
  if (breakerOpen) return "breaker";
  if (status === "suspect") return "suspect";
  if (!windowHolds) return "small_window";
  if (load.room === "none") return "full";
  return load.room === "queue" ? "busy" : undefined;
}

/** The groups of equal measure, the smallest measure first. Nearly always all are of one. */
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

/** Power of two choices, again and again until none is left; of a large fleet, until more are drawn than are ever asked. */
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
