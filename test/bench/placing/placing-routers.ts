import { chatBody } from "#shared/protocol/job-bodies.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { Breakers } from "../../../services/gateway/routing/breakers.ts";
import { JobPlacements, type PlacementQuery } from "../../../services/gateway/routing/job-placements.ts";
import type { PlacedJob } from "../../../services/gateway/routing/placement-memory.ts";
import { blocksOfChat } from "../../../services/gateway/routing/prompt-blocks.ts";
import type { SeededRandom } from "../../harness/seeded-random.ts";
import type { TurnableClock } from "../../harness/turnable-clock.ts";
import { bootAt, modelOf, presenceOf } from "../../unit/gateway/machines-of-a-fleet.ts";
import { charactersPerToken } from "../routing/prefix-cache.ts";
import type { SimulatedJob, SimulatedMachine } from "./simulated-machine.ts";

/** A machine by its name. Undefined while it is away. */
export type Machines = ReadonlyMap<string, SimulatedMachine | undefined>;

export interface PlacingRouter {
  /** Chooses a machine among those that are there. */
  choose(job: SimulatedJob): string;
  first?(job: SimulatedJob): void;
  ended?(job: SimulatedJob, outcome: "answered" | "lost"): void;
  /** Called every `tickMs`. */
  tick?(): void;
  /** Called when a machine is seen to be away, or is back. */
  changed?(machine: string): void;
}

export interface RouterParts {
  readonly machines: Machines;
  readonly slots: number;
  readonly clock: TurnableClock;
  readonly random: SeededRandom;
}

const presenceMs = 1_000;

/** The routing of the product on so many gateways, with or without what machines tell of their memory. */
export class ProductRouter implements PlacingRouter {
  readonly #parts: RouterParts;
  readonly #told = new Map<string, OfferedModel[]>();
  readonly #gateways: readonly { readonly roster: Roster; readonly placements: JobPlacements }[];
  readonly #open = new Map<number, PlacedJob>();
  readonly #boots = new Map<string, number>();
  #announcedAtMs = -Infinity;
  #turn = 0;

  constructor(parts: RouterParts, count: number) {
    const { machines, clock, random } = parts;
    this.#parts = parts;
    for (const [name, machine] of machines) {
      const models = (machine?.models ?? []).map(({ id, memoryMb }) =>
        modelOf(id, { context_window: 100_000, size_mb: memoryMb }),
      );
      this.#told.set(name, models);
    }
    const offering = (id: string): string[] =>
      [...this.#told]
        .filter(([, models]) => models.some((model) => model.id === id))
        .map(([name]) => name)
        .toSorted();
    this.#gateways = Array.from({ length: count }, () => {
      const roster = new Roster(timingAt(1));
      const catalogues = {
        of: ({ machine }: { readonly machine: string }) => this.#told.get(machine) ?? [],
        offering,
        withheld: () => [],
      };
      const breakers = new Breakers(timingAt(1));
      const placements = new JobPlacements({ roster, catalogues, clock, breakers, random: () => random.next() });
      if (count > 1) placements.memory.onChange(() => {});
      return { roster, placements };
    });
  }

  choose(job: SimulatedJob): string {
    if (this.#announcedAtMs === -Infinity) this.#announce();
    const { placements } = this.#gateways[this.#turn++ % this.#gateways.length] ?? {};
    const { promptTokens } = job.request;
    const text = `${job.id} `.padEnd(promptTokens * charactersPerToken, "x");
    const prompt = blocksOfChat(chatBody.parse({ messages: [{ role: "user", content: text }] }), 1);
    const needs = { capability: "completion" as const, tools: false, imageParam: undefined, promptTokens, prompt };
    const wish: PlacementQuery = { kind: "chat", modelId: job.model, machines: undefined, needs };
    const choice = placements?.choose(wish);
    const chosen = choice?.outcome === "machines" ? choice.ranked[0] : undefined;
    if (placements === undefined || chosen === undefined) throw new Error("no machine takes a simulated request");
    const placed = placements.placed(chosen, wish, { whole: false });
    placed.accepted();
    this.#open.set(job.id, placed);
    return chosen.machine;
  }

  first({ id }: SimulatedJob): void {
    this.#open.get(id)?.answering();
  }

  ended({ id, request }: SimulatedJob, outcome: "answered" | "lost"): void {
    const { promptTokens, answerTokens: completionTokens } = request;
    const usage = { promptTokens, completionTokens, cachedTokens: 0 };
    const end = { finishReason: "stop" as const, usage, timings: { queuedMs: 0, firstTokenMs: null, totalMs: 0 } };
    const answered = { end, receivedBytes: completionTokens * charactersPerToken };
    this.#open.get(id)?.ended(outcome === "answered" ? answered : undefined);
    this.#open.delete(id);
  }

  changed(machine: string): void {
    if (this.#parts.machines.get(machine) !== undefined) this.#boots.set(machine, this.#parts.clock.now());
    this.#announce();
  }

  tick(): void {
    if (this.#parts.clock.now() - this.#announcedAtMs >= presenceMs) this.#announce();
    if (this.#gateways.length === 1) return;
    const news = this.#gateways.map(({ placements: { memory } }) => ({
      loads: memory.loads(),
      prompts: memory.takePrompts(),
    }));
    for (const [place, { placements }] of this.#gateways.entries()) {
      for (const [from, told] of news.entries()) if (from !== place) placements.memory.told(`${from}`, told);
    }
  }

  #announce(): void {
    const { machines, slots, clock } = this.#parts;
    this.#announcedAtMs = clock.now();
    for (const [name, machine] of machines) {
      const { catalogue = [], memory } = machine?.tell() ?? {};
      if (catalogue.length > 0) this.#told.set(name, [...catalogue]);
      const load = { slots, queueMax: 1_000, running: machine?.running ?? 0, ...(memory && { memory }) };
      const queued = (machine?.open.size ?? 0) - load.running;
      const epoch = bootAt(this.#boots.get(name) ?? 0);
      const state = machine === undefined ? ("gone" as const) : ("ready" as const);
      const presence = presenceOf(name, { ...load, queued, state, epoch });
      for (const { roster, placements } of this.#gateways) {
        roster.announced(presence, clock.now());
        placements.loadReported(presence);
      }
    }
  }
}

/**
 * The policy of LocalAI: a machine that has the model or loads it, the least busy of them; else the one with most free
 * memory, if the model fits there; else the one whose idle model was used longest ago.
 */
export function freeThenOldest({ machines }: RouterParts): PlacingRouter {
  return {
    choose({ model }) {
      const there = [...machines].flatMap(([name, machine]) =>
        machine?.models.some(({ id }) => id === model) ? [{ name, machine }] : [],
      );
      const byLoad = there.toSorted((one, other) => one.machine.open.size - other.machine.open.size);
      const wanted = ({ machine: { loaded, loading, open } }: (typeof there)[number]): boolean =>
        loaded.has(model) || loading === model || [...open.values()].some((job) => job.model === model);
      const needed = there[0]?.machine.models.find(({ id }) => id === model)?.memoryMb ?? 0;
      const roomy = there.toSorted((one, other) => other.machine.freeMb - one.machine.freeMb);
      const oldestOf = ({ loaded, usedAtMs }: SimulatedMachine): number =>
        Math.min(...[...loaded].map((id) => usedAtMs.get(id) ?? -Infinity));
      const oldest = there.toSorted((one, other) => oldestOf(one.machine) - oldestOf(other.machine));
      const chosen = byLoad.find(wanted) ?? roomy.find(({ machine }) => machine.freeMb >= needed) ?? oldest[0];
      if (chosen === undefined) throw new Error("no machine is there");
      return chosen.name;
    },
  };
}

/** Places each model on the machines of a table that is made once, and takes the least busy of those that are there. */
export function byTable(parts: RouterParts, table: ReadonlyMap<string, readonly string[]>): PlacingRouter {
  return {
    choose({ model }) {
      const there = [...parts.machines]
        .filter(([, machine]) => machine?.models.some(({ id }) => id === model))
        .map(([name]) => name);
      const placed = (table.get(model) ?? []).filter((name) => there.includes(name));
      const [first] = (placed.length > 0 ? placed : there).toSorted(
        (one, other) => (parts.machines.get(one)?.open.size ?? 0) - (parts.machines.get(other)?.open.size ?? 0),
      );
      if (first === undefined) throw new Error("no machine is there");
      return first;
    },
  };
}
