import { sleep } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import type { MemoryFacts } from "#shared/protocol/presence.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Schedule } from "../../../services/agent/jobs/schedule.ts";
import type { ModelDemand } from "../../../services/agent/models/model-facts.ts";
import { ModelReconciler } from "../../../services/agent/models/reconcile-models.ts";
import { RuntimeWatch } from "../../../services/agent/models/watch-runtimes.ts";
import type { ManageRun } from "../../../services/agent/runtimes/runtime.ts";
import type { TurnableClock } from "../../harness/turnable-clock.ts";
import { LoadingRuntime } from "../../unit/agent/loading-runtime.ts";
import { Engine, type EngineRequest } from "../routing/engine.ts";
import type { SimulatedMachineSpec, SimulatedModel } from "./fleets.ts";

export interface SimulatedJob {
  readonly id: number;
  readonly model: string;
  readonly request: EngineRequest;
  readonly first: () => void;
  readonly ended: () => void;
  placedAtMs: number;
}

export interface MachineParts {
  readonly spec: SimulatedMachineSpec;
  readonly models: readonly SimulatedModel[];
  readonly clock: TurnableClock;
  /** Returns in how many ms a model has to be loaded again if it leaves the memory here now; for an oracle. */
  readonly returnsInMs?: ((model: string) => number) | undefined;
  /** The models that are in memory from the beginning on and leave it last, where the engine itself decides. */
  readonly pinned?: ReadonlySet<string> | undefined;
}

/** The machine, as routers see it. */
export interface SimulatedMachine {
  readonly models: readonly SimulatedModel[];
  readonly loaded: ReadonlySet<string>;
  /** The model that comes into memory now. */
  readonly loading: string | undefined;
  readonly freeMb: number;
  readonly open: ReadonlyMap<number, SimulatedJob>;
  readonly running: number;
  readonly usedAtMs: ReadonlyMap<string, number>;
  /** The loads so far, and the models that made room for them. */
  readonly counts: { readonly loads: number; readonly displaced: number };
  submit(job: SimulatedJob): void;
  /** Returns what presence and catalogue tell of it. */
  tell(): { readonly catalogue: readonly OfferedModel[]; readonly memory: MemoryFacts | undefined };
  stop(): void;
}

const unloadMs = 300;
/** A return after this time counts half. */
const foreseenMs = 300_000;

/** A runtime whose models lie in the memory of a machine, with the times of their loads. */
class SimulatedRuntime extends LoadingRuntime {
  constructor({ spec, models, clock }: Pick<MachineParts, "spec" | "models" | "clock">) {
    super({
      sizes: Object.fromEntries(models.map(({ id, memoryMb }) => [id, memoryMb])),
      totalMb: spec.memoryMb,
      slots: spec.engine.slots,
    });
    const { load, unload } = this.manages;
    Object.assign(this.manages, {
      load: async (run: ManageRun) => {
        const ms = (models.find(({ id }) => id === run.model)?.loadMs ?? 0) * (spec.loadTimes ?? 1);
        clock.after(ms, () => this.finishLoad(run.model));
        await load?.(run);
      },
      unload: async (run: ManageRun) => {
        await sleep(clock, unloadMs);
        await unload?.(run);
      },
    });
  }
}

/** The jobs of a machine and its engine, which answers several models in one batch. */
abstract class AnsweringMachine {
  readonly open = new Map<number, SimulatedJob>();
  readonly usedAtMs = new Map<string, number>();
  protected readonly parts: MachineParts;
  readonly #engine: Engine;
  readonly #answering = new Map<number, SimulatedJob>();
  #isBusy = false;
  #isStopped = false;

  constructor(parts: MachineParts) {
    this.parts = parts;
    this.#engine = new Engine({ ...parts.spec.engine, slots: 1_000 });
  }

  get models(): readonly SimulatedModel[] {
    return this.parts.models;
  }

  get running(): number {
    return this.#answering.size;
  }

  stop(): void {
    this.#isStopped = true;
  }

  protected answering(model: string): number {
    return [...this.#answering.values()].filter((job) => job.model === model).length;
  }

  protected answer(job: SimulatedJob): void {
    this.#answering.set(job.id, job);
    this.usedAtMs.set(job.model, this.parts.clock.now());
    this.#engine.submit(job.request);
    if (!this.#isBusy) this.#iterate();
  }

  /** Called when an answer is over and its slot is free. */
  protected abstract freed(job: SimulatedJob): void;

  #iterate(): void {
    const durationMs = this.#engine.begin();
    this.#isBusy = durationMs !== undefined;
    if (durationMs !== undefined) this.parts.clock.after(durationMs, () => this.#end());
  }

  #end(): void {
    if (this.#isStopped) return;
    for (const { request, tokens } of this.#engine.end()) {
      const job = this.#answering.get(request.id);
      if (job === undefined) continue;
      if (tokens === 1) job.first();
      if (tokens < request.answerTokens) continue;
      this.#answering.delete(job.id);
      this.open.delete(job.id);
      this.usedAtMs.set(job.model, this.parts.clock.now());
      job.ended();
      this.freed(job);
    }
    this.#iterate();
  }
}

/** A machine whose agent places models: its loads and its schedule are those of the product. */
export class PlacedMachine extends AnsweringMachine implements SimulatedMachine {
  readonly #runtime: SimulatedRuntime;
  readonly #watch: RuntimeWatch;
  readonly #loads: ModelReconciler;
  readonly #schedule = new Schedule<SimulatedJob>({ queueMax: 1_000 });
  readonly #beat: { cancel(): void };

  private constructor(parts: MachineParts) {
    super(parts);
    const { clock, spec, returnsInMs } = parts;
    const [log, timing] = [createLog({ level: "silent", name: "bench" }), timingAt(1)];
    const runtime = new SimulatedRuntime(parts);
    this.#runtime = runtime;
    const memory = { read: async () => ({ ...runtime.memory }), diskFreeMb: async () => undefined };
    const sources = [{ location: "bench", look: async () => runtime }];
    this.#watch = new RuntimeWatch({ sources, firstSeen: () => 0, memory, timing, clock, log });
    if (returnsInMs !== undefined) foresee(this.#watch, returnsInMs);
    const jobs = { demand: () => this.#demand(), look: () => this.#readyAnew() };
    const owner = { decidesLoads: true, manage: new Set<never>() };
    this.#loads = new ModelReconciler({ runtime: this.#watch, jobs, ...owner, timing, clock, log });
    for (const { id } of parts.models) this.#schedule.resize(id, spec.engine.slots);
    this.#beat = clock.every(timing.beatIntervalMs, () => this.#readyAnew());
  }

  static async start(parts: MachineParts): Promise<PlacedMachine> {
    const machine = new PlacedMachine(parts);
    await machine.#watch.start();
    await machine.#watch.facts.readMemory();
    return machine;
  }

  get loaded(): ReadonlySet<string> {
    return new Set(this.#runtime.loaded);
  }

  get loading(): string | undefined {
    return this.#loads.news?.model;
  }

  get freeMb(): number {
    return this.#runtime.memory.freeMb;
  }

  override stop(): void {
    super.stop();
    this.#beat.cancel();
    this.#loads.close();
    void this.#watch.stop();
  }

  submit(job: SimulatedJob): void {
    this.open.set(job.id, job);
    job.placedAtMs = this.parts.clock.now();
    const turn = { lane: job.model, sender: "key", ready: this.#loads.isReady(job.model) };
    for (const each of this.#schedule.submit(job, turn) ?? []) this.answer(each);
    const { asked } = this.#watch.facts;
    asked.set(job.model, (asked.get(job.model) ?? 0) + 1);
    this.#readyAnew();
  }

  tell(): ReturnType<SimulatedMachine["tell"]> {
    return { catalogue: this.#watch.offer?.catalogue ?? [], memory: this.#loads.facts };
  }

  get counts(): SimulatedMachine["counts"] {
    const { loads, unloads } = this.#loads.counts;
    return { loads, displaced: unloads.request };
  }

  protected freed(job: SimulatedJob): void {
    for (const each of this.#schedule.remove(job)) this.answer(each);
    this.#loads.look();
  }

  #readyAnew(): void {
    const waiting = [...this.open.values()].filter((job) => this.#schedule.positions().has(job));
    for (const job of waiting) {
      for (const each of this.#schedule.setReady(job, this.#loads.isReady(job.model))) this.answer(each);
    }
    this.#loads.look();
  }

  #demand(): ReadonlyMap<string, ModelDemand> {
    const positions = this.#schedule.positions();
    const demand = new Map<string, ModelDemand>();
    for (const job of this.open.values()) {
      const { running, waiting, waitingSinceMs } = demand.get(job.model) ?? { running: 0, waiting: 0 };
      const waits = positions.has(job);
      demand.set(job.model, {
        running: running + (waits ? 0 : 1),
        waiting: waiting + (waits ? 1 : 0),
        waitingSinceMs: waits ? Math.min(job.placedAtMs, waitingSinceMs ?? Infinity) : waitingSinceMs,
      });
    }
    return demand;
  }
}

/** Replaces the expected return of each model by the true one. */
function foresee(watch: RuntimeWatch, returnsInMs: (model: string) => number): void {
  const planned = watch.facts.planned.bind(watch.facts);
  watch.facts.planned = (...given) =>
    planned(...given).map((each) => ({
      ...each,
      returnMs: (each.loadMs * foreseenMs) / (foreseenMs + returnsInMs(each.model)),
    }));
}

/** A machine whose engine loads by itself, as Ollama does: in the order of the requests, in place of the least recently used. */
export class EngineMachine extends AnsweringMachine implements SimulatedMachine {
  readonly loaded = new Set<string>();
  loading: string | undefined;
  readonly counts = { loads: 0, displaced: 0 };
  #pending: SimulatedJob[] = [];
  /** Jobs that were handed to a model in memory and wait for a slot. */
  readonly #handed: SimulatedJob[] = [];
  #isOver = false;

  constructor(parts: MachineParts) {
    super(parts);
    for (const id of parts.pinned ?? []) this.loaded.add(id);
  }

  get freeMb(): number {
    const taken = [...this.loaded, ...(this.loading === undefined ? [] : [this.loading])];
    return this.parts.spec.memoryMb - taken.reduce((sum, id) => sum + this.#modelOf(id).memoryMb, 0);
  }

  override stop(): void {
    super.stop();
    this.#isOver = true;
  }

  submit(job: SimulatedJob): void {
    this.open.set(job.id, job);
    this.#pending.push(job);
    this.#pump();
  }

  tell(): ReturnType<SimulatedMachine["tell"]> {
    return { catalogue: [], memory: undefined };
  }

  protected freed(): void {
    this.#pump();
  }

  #pump(): void {
    for (let place = 0; place < this.#handed.length;) {
      const [job] = this.#handed.slice(place, place + 1);
      if (job !== undefined && this.answering(job.model) < this.parts.spec.engine.slots) {
        this.#handed.splice(place, 1);
        this.answer(job);
      } else place += 1;
    }
    for (let [job] = this.#pending; job !== undefined && this.loading === undefined; [job] = this.#pending) {
      if (!this.loaded.has(job.model)) return this.#makeRoom(job.model);
      this.#pending.shift();
      if (this.answering(job.model) < this.parts.spec.engine.slots) this.answer(job);
      else this.#handed.push(job);
    }
  }

  #makeRoom(model: string): void {
    const isIdle = (id: string): boolean => this.answering(id) === 0 && this.#handed.every((job) => job.model !== id);
    const isPinned = (id: string): number => Number(this.parts.pinned?.has(id) === true);
    while (this.freeMb < this.#modelOf(model).memoryMb) {
      const [oldest] = [...this.loaded]
        .filter(isIdle)
        .toSorted((one, other) => isPinned(one) - isPinned(other) || this.#usedAt(one) - this.#usedAt(other));
      if (oldest === undefined) return;
      this.loaded.delete(oldest);
      this.counts.displaced += 1;
    }
    const { clock, spec } = this.parts;
    this.loading = model;
    this.counts.loads += 1;
    clock.after(this.#modelOf(model).loadMs * (spec.loadTimes ?? 1), () => {
      if (this.#isOver) return;
      this.loading = undefined;
      this.loaded.add(model);
      this.#pump();
    });
  }

  #usedAt(id: string): number {
    return this.usedAtMs.get(id) ?? -Infinity;
  }

  #modelOf(id: string): SimulatedModel {
    const model = this.parts.models.find((each) => each.id === id);
    if (model === undefined) throw new Error(`no machine has ${id}`);
    return model;
  }
}
