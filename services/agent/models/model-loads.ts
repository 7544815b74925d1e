import { Fault, originOf } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { ModelMemory } from "#shared/placing/make-room.ts";
import type { LoadNews } from "#shared/protocol/frame-payload.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { ServedModel } from "./model-set.ts";
import { type LoadStep, planLoad, type PlannedModel } from "./plan-loads.ts";
import type { RuntimeWatch } from "./watch-runtimes.ts";

/** The requests for one model that this agent holds. */
export interface ModelDemand {
  readonly running: number;
  readonly waiting: number;
  /** When the oldest waiting request came; undefined if none waits. */
  readonly waitingSinceMs: number | undefined;
}

interface LoadOptions {
  readonly runtime: RuntimeWatch;
  readonly memory: { read(): Promise<ModelMemory> };
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the requests for each model that has some. */
  readonly demand: () => ReadonlyMap<string, ModelDemand>;
  /** Called when a model became ready, or is not any more, or its load went on. */
  readonly onChange: () => void;
}

/** All that is remembered of one model. */
interface Memories {
  memoryMb?: number | undefined;
  loadMs?: number | undefined;
  loadedSinceMs?: number | undefined;
  usedAtMs: number;
  /** Requests so far, each weighed by half after `demandHalvesMs`. */
  asked: number;
  askedAtMs: number;
  failure?: { readonly fault: Fault; readonly untilMs: number; readonly times: number } | undefined;
}

/** A load that is under way. */
interface Load {
  readonly model: string;
  readonly begunAtMs: number;
  readonly expectedMs: number;
}

/** A model in memory is larger than its file, by its window. */
const windowPart = 0.2;

/** How fast a model is loaded that was not loaded here yet: as from a usual disk. */
const usualLoadMs = (sizeMb: number): number => 1_000 + sizeMb;

const demandHalvesMs = 600_000;
/** A return within this time counts as the price of an unload. */
const returnWithinMs = 300_000;

/** How long a model that could not be loaded is not tried again: twice as long after each failure. */
const failureStandsMs = 5_000;
const failureStandsMaxMs = 300_000;

/**
 * Loads the models that requests wait for, and unloads others to make room. A load belongs to the agent: it goes on when
 * its clients leave and when their gateway dies. One model is loaded at a time.
 */
export class ModelLoads {
  readonly #options: LoadOptions;
  readonly #memories = new Map<string, Memories>();
  readonly #stop = new AbortController();
  /** The models that begin no further answer, since they have to make room. */
  #held: ReadonlySet<string> = new Set();
  #load: Load | undefined;
  #isLooking = false;
  /** True if something changed during a look, so that another one follows. */
  #isAskedAgain = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    options.runtime.onChange(() => options.onChange());
  }

  /** The load that is under way, and the time that it is expected to go on. */
  get news(): LoadNews | undefined {
    if (this.#load === undefined) return undefined;
    const { model, begunAtMs, expectedMs } = this.#load;
    const goneMs = this.#options.clock.now() - begunAtMs;
    const percent = Math.min(99, Math.floor((100 * goneMs) / expectedMs));
    return { model, percent, leftMs: Math.round(Math.max(1_000, expectedMs - goneMs)) };
  }

  /** True if requests for a model may begin. A runtime that cannot be told to load loads by itself. */
  isReady(id: string): boolean {
    const served = this.#options.runtime.offer?.find(id);
    return served === undefined || !isLoadable(served) || (served.model.loaded === true && !this.#held.has(id));
  }

  /** Returns why requests for a model are refused: it could not be loaded lately. */
  refusalOf(id: string): Fault | undefined {
    const failure = this.#memories.get(id)?.failure;
    return failure !== undefined && failure.untilMs > this.#options.clock.now() ? failure.fault : undefined;
  }

  /** Counts a request for a model. */
  asked(id: string): void {
    const nowMs = this.#options.clock.now();
    const memories = this.#of(id);
    memories.asked = halved(memories, nowMs) + 1;
    memories.askedAtMs = memories.usedAtMs = nowMs;
  }

  /** Takes the next step, if one is due. Called whenever requests come and go, and once per beat. */
  look(): void {
    this.#isAskedAgain = this.#isLooking;
    if (this.#isLooking || !this.#isWanted()) return;
    this.#isLooking = true;
    void this.#look().finally(() => {
      this.#isLooking = false;
      if (this.#isAskedAgain) this.look();
    });
  }

  close(): void {
    this.#stop.abort(new Fault("shutting_down", { message: "The agent is stopping." }));
  }

  #isWanted(): boolean {
    if (this.#held.size > 0) return true;
    for (const [id, { waiting }] of this.#options.demand()) if (waiting > 0 && !this.isReady(id)) return true;
    return false;
  }

  async #look(): Promise<void> {
    const { memory, log, onChange } = this.#options;
    try {
      const { totalMb, freeMb } = await memory.read();
      // No request begins between the plan and the hold of those that go.
      const models = this.#planned();
      const takenMb = models.reduce((sum, { isLoaded, memoryMb }) => sum + (isLoaded ? memoryMb : 0), 0);
      const step = planLoad(models, { totalMb, freeMb: Math.min(freeMb, totalMb - takenMb) });
      const goes = new Set(step?.unload.map(({ model }) => model));
      if (goes.symmetricDifference(this.#held).size > 0) {
        this.#held = goes;
        onChange();
      }
      if (step?.isDue) await this.#take(step);
    } catch (error) {
      log.error({ err: error }, "the loads of models could not be planned");
    }
  }

  async #take({ load, unload }: LoadStep): Promise<void> {
    const { clock, log, onChange } = this.#options;
    const { model } = load;
    const begunAtMs = clock.now();
    this.#load = { model, begunAtMs, expectedMs: load.loadMs };
    onChange();
    try {
      for (const { model: other } of unload) await this.#manage("unload", other);
      await this.#loadOrMakeRoom(model);
      await this.#lookAgain();
      const memories = this.#of(model);
      memories.loadedSinceMs = clock.now();
      memories.loadMs = Math.max(1, memories.loadedSinceMs - begunAtMs);
      memories.failure = undefined;
      const ms = Math.round(memories.loadMs);
      log.info({ model, ms, unloaded: unload.map((each) => each.model) }, "a model was loaded");
    } catch (error) {
      this.#failed(model, error);
      await this.#lookAgain();
    } finally {
      this.#load = undefined;
      this.#held = new Set();
      onChange();
    }
  }

  /** Asks the runtimes what is in memory. A look that had begun before is shared and may come too early. */
  async #lookAgain(): Promise<void> {
    const { runtime } = this.#options;
    for (let looks = 0; looks < 2; looks += 1) await runtime.ask().catch(() => undefined);
  }

  /** Loads a model. If that fails, all models that nobody uses make room, and it is tried once more. */
  async #loadOrMakeRoom(model: string): Promise<void> {
    try {
      await this.#manage("load", model);
    } catch (error) {
      await this.#lookAgain();
      const isUnused = (each: PlannedModel): boolean => each.isLoaded && each.running + each.waiting === 0;
      const unused = this.#planned().filter((each) => each.model !== model && isUnused(each));
      if (unused.length === 0) throw error;
      this.#held = new Set([...this.#held, ...unused.map((each) => each.model)]);
      for (const { model: other } of unused) await this.#manage("unload", other);
      await this.#manage("load", model);
    }
  }

  async #manage(action: "load" | "unload", id: string): Promise<void> {
    const { runtime, clock, timing, onChange } = this.#options;
    const served = runtime.offer?.find(id);
    const manage = served?.runtime.manages?.[action];
    if (served === undefined || manage === undefined) throw new Error(`the runtime of ${id} is gone`);
    const late = new AbortController();
    const message = `The runtime did not ${action} a model within ${timing.manageSilentMs} ms (manageSilentMs).`;
    const timer = clock.after(timing.manageSilentMs, () => late.abort(new Fault("upstream_timeout", { message })));
    try {
      const signal = AbortSignal.any([this.#stop.signal, late.signal]);
      await manage({ action, model: served.ownId, signal, onProgress: () => onChange() });
    } finally {
      timer.cancel();
    }
  }

  #failed(model: string, error: unknown): void {
    const { clock, log } = this.#options;
    const { internal, message, code } = Fault.from(error);
    const memories = this.#of(model);
    const times = (memories.failure?.times ?? 0) + 1;
    const standsMs = Math.min(failureStandsMaxMs, failureStandsMs * 2 ** (times - 1));
    const cause = internal ?? (error instanceof Fault ? message : originOf(error));
    log.warn({ model, code, cause, times, standsMs }, "a model could not be loaded");
    const told = `The model could not be loaded on its machine${error instanceof Fault ? `: ${message}` : "."}`;
    const fault = new Fault("upstream_error", { message: told, internal: cause, cause: error });
    memories.failure = { fault, untilMs: clock.now() + standsMs, times };
  }

  /** Returns the models that can be loaded and unloaded, with all that decides about them. */
  #planned(): PlannedModel[] {
    const { runtime, clock, demand } = this.#options;
    const nowMs = clock.now();
    const demands = demand();
    return (runtime.offer?.served ?? []).filter(isLoadable).map((served) => {
      const { model, memoryMb } = served;
      const { running = 0, waiting = 0, waitingSinceMs = nowMs } = demands.get(model.id) ?? {};
      const memories = this.#of(model.id);
      const isLoaded = model.loaded === true;
      if (memoryMb !== undefined) memories.memoryMb = memoryMb;
      if (running > 0) memories.usedAtMs = nowMs;
      memories.loadedSinceMs = isLoaded ? (memories.loadedSinceMs ?? nowMs) : undefined;
      const loadMs = memories.loadMs ?? usualLoadMs(model.size_mb);
      const perMs = (halved(memories, nowMs) * Math.LN2) / demandHalvesMs;
      return {
        model: model.id,
        isLoaded,
        memoryMb: memories.memoryMb ?? model.size_mb * (1 + windowPart),
        loadMs,
        returnMs: loadMs * (1 - Math.exp(-perMs * returnWithinMs)),
        running,
        waiting: this.refusalOf(model.id) === undefined ? waiting : 0,
        waitedMs: nowMs - waitingSinceMs,
        loadedForMs: nowMs - (memories.loadedSinceMs ?? nowMs),
        idleMs: nowMs - memories.usedAtMs,
      };
    });
  }

  #of(id: string): Memories {
    return this.#memories.getOrInsertComputed(id, () => ({ usedAtMs: -Infinity, asked: 0, askedAtMs: 0 }));
  }
}

/** True if the runtime says which models are in memory, and can be told to load and unload them. */
function isLoadable({ runtime, model }: ServedModel): boolean {
  return model.loaded !== undefined && runtime.manages?.load !== undefined && runtime.manages.unload !== undefined;
}

function halved({ asked, askedAtMs }: Memories, nowMs: number): number {
  return asked * 2 ** ((askedAtMs - nowMs) / demandHalvesMs);
}
