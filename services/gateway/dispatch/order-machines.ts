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

/** A machine counts as slower than the fastest when it takes this many times as long; less is noise. */
const slowerBy = 2;

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
  return groupsBy(machines, standing).flatMap((group) => {
    const times = new Map(expectedTimes(group).map((ms, place) => [group[place], ms]));
    const timeOf = (machine: Machine): number => times.get(machine) ?? Infinity;
    const fastestMs = Math.min(...times.values());
    const octave = (machine: Machine): number => Math.floor(Math.log(timeOf(machine) / fastestMs) / Math.log(slowerBy));
    return groupsBy(group, octave).flatMap((alike) => {
      const slower = alike.some((machine) => octave(machine) > 0);
      const warm = alike.filter(({ warm: isWarm }) => isWarm);
      const cold = alike.filter(({ warm: isWarm }) => !isWarm);
      const drawn = [...drawPairs(warm, timeOf, random), ...drawPairs(cold, timeOf, random)];
      return drawn.map((machine) => ({
        machine,
        reason:
          against(machine) ?? (slower ? "slower" : machine.warm ? "warm" : alike.length > 1 ? "drawn" : undefined),
      }));
    });
  });
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

/** The groups of equal measure, the smallest measure first. */
function groupsBy<Machine>(machines: readonly Machine[], measure: (machine: Machine) => number): readonly Machine[][] {
  const groups = new Map<number, Machine[]>();
  for (const machine of machines) groups.getOrInsertComputed(measure(machine), () => []).push(machine);
  return [...groups].toSorted(([one], [other]) => one - other).map(([, group]) => group);
}

/** Power of two choices, again and again until none is left. */
function drawPairs<Machine>(
  machines: readonly Machine[],
  timeOf: (machine: Machine) => number,
  random: () => number,
): readonly Machine[] {
  const left = machines.toSorted((one, other) => timeOf(one) - timeOf(other));
  const order: Machine[] = [];
  while (left.length > 0) {
    const first = draw(left.length, random);
    const second = left.length === 1 ? first : (first + 1 + draw(left.length - 1, random)) % left.length;
    const [one, other] = [left[first], left[second]];
    if (one === undefined || other === undefined) break;
    const place = timeOf(other) < timeOf(one) ? second : first;
    order.push(...left.splice(place, 1));
  }
  return order;
}

function draw(count: number, random: () => number): number {
  return Math.min(count - 1, Math.floor(random() * count));
}
