import { memoryMbOf } from "#shared/placing/load-estimates.ts";
import { makeRoom } from "#shared/placing/make-room.ts";
import { type KeepFacts, keepsMax, type MemoryFacts } from "#shared/protocol/presence.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import type { KeepRecord } from "#shared/records/keep-record.ts";

/** A machine, as far as it decides where models are kept. */
export interface KeepingMachine {
  readonly machine: string;
  readonly memory: MemoryFacts;
  /** The models that it offers. */
  readonly offered: ReadonlyMap<string, OfferedModel>;
  /** True if its record lets it offer a model. */
  readonly permits: (modelId: string) => boolean;
}

/** One copy of a kept model: on a machine, or nowhere for lack of one. */
export interface KeepStep {
  readonly model: string;
  readonly machine: string | undefined;
  /** `load` and `pull`: the machine is about to be told. `unmet`: no machine can have it. The others are its own words. */
  readonly state: KeepFacts["state"] | "load" | "pull" | "unmet";
  readonly why: string;
}

export interface KeepPlan {
  readonly steps: readonly KeepStep[];
  /** The models that each machine is to be told to keep. */
  readonly told: ReadonlyMap<string, readonly string[]>;
}

/**
 * Decides which machines keep which models in memory. A machine that keeps a model already goes on. Then come machines that have
 * it in memory, those that have it installed, and those that may pull it; among these, the one with most memory left.
 */
export function planKeeps(keeps: readonly KeepRecord[], machines: readonly KeepingMachine[]): KeepPlan {
  const told = new Map(machines.map(({ machine }) => [machine, [] as string[]]));
  const leftMb = new Map(machines.map(({ machine, memory }) => [machine, memory.totalMb]));
  const steps: KeepStep[] = [];
  // The oldest wish comes first, so that a new one does not move what is there.
  const inOrder = keeps.toSorted((one, other) => one.createdAt - other.createdAt || (one.name < other.name ? -1 : 1));
  for (const keep of inOrder) {
    const { name, copies } = keep;
    const sizes = machines.flatMap(({ offered }) => offered.get(name) ?? []).map(memoryMbOf);
    /** The memory that it takes on a machine. Where it is not installed, it counts as on the others. */
    const neededMb = ({ offered }: KeepingMachine): number => {
      const model = offered.get(name);
      return model === undefined ? Math.max(0, ...sizes) : memoryMbOf(model);
    };
    const left = (machine: string): number => leftMb.get(machine) ?? 0;
    const judged = machines.map((each) => {
      const isFull = (told.get(each.machine)?.length ?? 0) >= keepsMax;
      const room = { neededMb: neededMb(each), leftMb: isFull ? -1 : left(each.machine) };
      return { each, ...judge(keep, each, room) };
    });
    const able = judged
      .filter(({ against }) => against === undefined)
      .toSorted(
        (one, other) =>
          one.place - other.place ||
          left(other.each.machine) - left(one.each.machine) ||
          (one.each.machine < other.each.machine ? -1 : 1),
      );
    for (const { each, step } of able.slice(0, copies)) {
      told.get(each.machine)?.push(name);
      leftMb.set(each.machine, left(each.machine) - neededMb(each));
      steps.push({ model: name, machine: each.machine, ...step });
    }
    const against = judged.flatMap((each) =>
      each.against === undefined ? [] : `${each.each.machine} ${each.against}`,
    );
    for (let copy = able.length; copy < copies; copy += 1) {
      const why =
        against.length === 0 ? "no machine lets models be placed (TRUNKLINE_MANAGE=place)" : against.join("; ");
      steps.push({ model: name, machine: undefined, state: "unmet", why });
    }
  }
  return { steps, told };
}

interface Judged {
  readonly place: number;
  readonly step: Pick<KeepStep, "state" | "why">;
  /** Why the machine cannot keep the model; undefined if it can. */
  readonly against?: string | undefined;
}

function judge(
  { name, machines: named }: KeepRecord,
  { machine, memory, offered, permits }: KeepingMachine,
  { neededMb, leftMb }: { readonly neededMb: number; readonly leftMb: number },
): Judged {
  const none = { place: 0, step: { state: "unmet", why: "" } } as const;
  if (named !== undefined && !named.includes(machine)) return { ...none, against: "is not named" };
  if (!permits(name)) return { ...none, against: "may not offer it (machines models)" };
  if (leftMb < neededMb) return { ...none, against: "has no room beside the other kept models" };
  const kept = memory.keeps?.find(({ model }) => model === name);
  if (kept !== undefined) return { place: 0, step: { state: kept.state, why: kept.why ?? words[kept.state] } };
  const isInMemory = memory.residents.some(({ model }) => model === name);
  if (isInMemory) return { place: 1, step: { state: "load", why: "it is in memory there and is held from now on" } };
  if (offered.has(name))
    return { place: 2, step: { state: "load", why: `it is installed there; ${goes(memory, neededMb)}` } };
  if (memory.canPull !== true) return { ...none, against: "has it not installed and may not pull (TRUNKLINE_MANAGE)" };
  if ((memory.diskFreeMb ?? Infinity) < neededMb) return { ...none, against: "has too little disk left to pull it" };
  return { place: 3, step: { state: "pull", why: "it is not installed there, which has the most room" } };
}

const words: Readonly<Record<KeepFacts["state"], string>> = {
  loaded: "its machine holds it",
  loading: "is being loaded",
  waits: "waits for room in memory",
  suspended: "somebody unloaded it",
  pulling: "is being pulled",
  missing: "is not installed",
  failed: "could not be loaded",
};

/** Tells which models would make room. */
function goes({ residents, freeMb }: MemoryFacts, neededMb: number): string {
  const mayGo = residents.filter(({ isKept, inUse }) => isKept !== true && inUse !== true);
  const gone = makeRoom(mayGo, { neededMb, freeMb });
  if (gone === undefined) return "it waits until models in use make room";
  return gone.length === 0 ? "there is room" : `${gone.map(({ model }) => model).join(", ")} would make room`;
}
