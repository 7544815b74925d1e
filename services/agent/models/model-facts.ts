import { z } from "zod";
import { loadMsOf, memoryMbOf } from "#shared/placing/load-estimates.ts";
import type { ModelMemory } from "#shared/placing/make-room.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import { type KeepFacts, type MemoryFacts, listBytesMax, residentsMax } from "#shared/protocol/presence.ts";
import type { ModelNotes } from "./model-notes.ts";
import type { ServedModel } from "./model-set.ts";
import type { PlannedModel } from "./plan-loads.ts";

/** The requests for one model that an agent holds. */
export interface ModelDemand {
  readonly running: number;
  readonly waiting: number;
  /** When the oldest waiting request came; undefined if none waits. */
  readonly waitingSinceMs: number | undefined;
}

/** The measurements of a model that outlast the agent. They are those of another model once its file has another size. */
export const measurement = z.object({
  sizeMb: z.number(),
  memoryMb: z.number().nonnegative().optional(),
  loadMs: z.number().nonnegative().optional(),
});
export type Measurement = z.infer<typeof measurement>;

/** All that was measured of one model. */
interface Measured {
  memoryMb?: number | undefined;
  loadMs?: number | undefined;
  loadedSinceMs?: number | undefined;
  usedAtMs: number;
  /** Requests so far, each weighed by half after `demandHalvesMs`. */
  asked: number;
  askedAtMs: number;
}

/** Reads the memory for models, and what is free on the disk where they lie, as far as that disk is here. */
export interface MemorySource {
  read(): Promise<ModelMemory>;
  diskFreeMb(): Promise<number | undefined>;
}

export interface Wishes {
  readonly demands: ReadonlyMap<string, ModelDemand>;
  /** True if the site wants a model in memory. */
  isKept(id: string): boolean;
}

export interface FactsOptions {
  readonly memory?: MemorySource | undefined;
  readonly measurements?: ModelNotes<Measurement> | undefined;
  readonly clock: Pick<Clock, "now">;
}

/** The most memory that a model is believed to take, in sizes of its file, if that is known. */
const memoryPartMax = 3;

const demandHalvesMs = 600_000;
/** A return within this time counts as the price of an unload. */
const returnWithinMs = 60_000;

/** A new measurement replaces the one that gateways were told if it differs from that by more than this part. */
const newsPart = 0.2;

/** Steps of the facts in presence, so that small changes do not make gateways read a presence anew. */
const memoryStepMb = 100;
const timeStepMs = 1_000;

/** The measurements of an agent: of its models, and of the memory for them. */
export class ModelFacts {
  /** The requests for each model since the last look at them. */
  readonly asked = new Map<string, number>();
  readonly #options: FactsOptions;
  readonly #measured = new Map<string, Measured>();
  #memory: (ModelMemory & { readonly diskFreeMb: number | undefined }) | undefined;

  constructor(options: FactsOptions) {
    this.#options = options;
  }

  /** Reads the memory for models anew. */
  async readMemory(): Promise<ModelMemory> {
    const { memory } = this.#options;
    if (memory === undefined) throw new Error("this agent reads no memory");
    const [read, diskFreeMb] = await Promise.all([memory.read(), memory.diskFreeMb()]);
    this.#memory = { ...read, diskFreeMb };
    return read;
  }

  /** Called when models came into memory or left it. */
  memoryChanged(): void {
    if (this.#options.memory !== undefined) this.readMemory().catch(() => undefined);
  }

  /** Notes that a model was loaded, and how much less memory was free afterwards. */
  loaded({ id, size_mb: sizeMb }: Pick<OfferedModel, "id" | "size_mb">, ms: number, tookMb: number): void {
    const measured = this.#of(id);
    measured.loadedSinceMs = this.#options.clock.now();
    measured.loadMs = renewed(measured.loadMs, Math.max(1, ms));
    // Other programs take memory and give it back meanwhile. A runtime that tells the size of its models knows better.
    if (Number.isFinite(tookMb)) {
      const mostMb = sizeMb === 0 ? Infinity : memoryPartMax * sizeMb;
      if (tookMb > 0 || sizeMb > 0) measured.memoryMb ??= Math.min(Math.max(tookMb, sizeMb), mostMb);
    }
  }

  /** Returns what gateways are told of a model with its catalogue. */
  learnt(
    { id, size_mb: sizeMb }: Pick<OfferedModel, "id" | "size_mb">,
    memoryMb: number | undefined,
  ): Pick<OfferedModel, "memory_mb" | "load_ms"> {
    const measured = this.#of(id);
    const noted = this.#options.measurements?.get(id);
    if (noted?.sizeMb === sizeMb) {
      measured.memoryMb ??= noted.memoryMb;
      measured.loadMs ??= noted.loadMs;
    }
    if (memoryMb !== undefined) measured.memoryMb = renewed(measured.memoryMb, memoryMb);
    const { memoryMb: takes, loadMs } = measured;
    const isNews = takes !== noted?.memoryMb || loadMs !== noted?.loadMs || sizeMb !== noted?.sizeMb;
    if (isNews && (takes ?? loadMs) !== undefined) {
      this.#options.measurements?.set(id, { sizeMb, memoryMb: takes, loadMs });
    }
    return {
      ...(takes !== undefined && { memory_mb: Math.round(takes) }),
      ...(loadMs !== undefined && { load_ms: Math.round(loadMs) }),
    };
  }

  /** Returns the models with all that decides which of them are in memory. */
  planned(served: readonly ServedModel[], wishes: Wishes): PlannedModel[] {
    const nowMs = this.#options.clock.now();
    return served.map(({ model }) => {
      const { running = 0, waiting = 0, waitingSinceMs = nowMs } = wishes.demands.get(model.id) ?? {};
      const measured = this.#of(model.id);
      const asked = this.asked.get(model.id);
      if (asked !== undefined) {
        measured.asked = halved(measured, nowMs) + asked;
        measured.askedAtMs = measured.usedAtMs = nowMs;
        this.asked.delete(model.id);
      }
      const isLoaded = model.loaded === true;
      if (running > 0) measured.usedAtMs = nowMs;
      measured.loadedSinceMs = isLoaded ? (measured.loadedSinceMs ?? nowMs) : undefined;
      const known = { size_mb: model.size_mb, memory_mb: measured.memoryMb, load_ms: measured.loadMs };
      const loadMs = loadMsOf(known);
      const perMs = (halved(measured, nowMs) * Math.LN2) / demandHalvesMs;
      return {
        model: model.id,
        isLoaded,
        isKept: wishes.isKept(model.id),
        memoryMb: memoryMbOf(known),
        loadMs,
        returnMs: loadMs * (1 - Math.exp(-perMs * returnWithinMs)),
        running,
        waiting,
        waitedMs: nowMs - waitingSinceMs,
        loadedForMs: nowMs - (measured.loadedSinceMs ?? nowMs),
        idleMs: nowMs - measured.usedAtMs,
      };
    });
  }

  /** Returns the facts for presence; undefined until the memory was read. */
  told(
    served: readonly ServedModel[],
    wishes: Wishes,
    { keeps, pulls, ...more }: Partial<MemoryFacts>,
  ): MemoryFacts | undefined {
    if (this.#memory === undefined) return undefined;
    const { totalMb, freeMb, diskFreeMb } = this.#memory;
    const inMemory = served.filter(({ model }) => model.loaded === true);
    const residents = this.planned(inMemory, wishes).map((each) => ({
      model: each.model,
      memoryMb: stepped(each.memoryMb, memoryStepMb),
      returnMs: stepped(each.returnMs, timeStepMs),
      ...(each.running + each.waiting > 0 && { inUse: true as const }),
      ...(each.isKept && { isKept: true as const }),
    }));
    return {
      totalMb: Math.round(totalMb),
      freeMb: stepped(Math.max(0, Math.min(freeMb, totalMb)), memoryStepMb),
      ...(diskFreeMb !== undefined && { diskFreeMb: stepped(diskFreeMb, memoryStepMb) }),
      residents: bounded(residents),
      ...more,
      ...(keeps !== undefined && { keeps: namedAll(keeps) }),
      ...(pulls !== undefined && { pulls: bounded(pulls) }),
    };
  }

  #of(id: string): Measured {
    return this.#measured.getOrInsertComputed(id, () => ({ usedAtMs: -Infinity, asked: 0, askedAtMs: 0 }));
  }
}

/** Returns as many of the facts as fit into a presence. */
function bounded<Fact>(facts: readonly Fact[]): Fact[] {
  const fit = facts.slice(0, residentsMax);
  while (Buffer.byteLength(JSON.stringify(fit)) > listBytesMax) fit.pop();
  return fit;
}

/** Returns the kept models without reasons rather than some of them: gateways compare the list with what they told. */
function namedAll(keeps: readonly KeepFacts[]): KeepFacts[] {
  const all = bounded(keeps);
  return all.length === keeps.length ? all : bounded(keeps.map(({ model, state }) => ({ model, state })));
}

function renewed(told: number | undefined, measured: number): number {
  return told === undefined || Math.abs(measured - told) > newsPart * told ? measured : told;
}

function stepped(value: number, step: number): number {
  return Math.round(value / step) * step;
}

function halved({ asked, askedAtMs }: Measured, nowMs: number): number {
  return asked * 2 ** ((askedAtMs - nowMs) / demandHalvesMs);
}
