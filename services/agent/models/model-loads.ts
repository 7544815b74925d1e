import { Fault, originOf } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { LoadNews } from "#shared/protocol/frame-payload.ts";
import { type KeepFacts, type LoadCounts, problemCharactersMax } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { ModelDemand } from "./model-facts.ts";
import type { ServedModel } from "./model-set.ts";
import { type LoadStep, planLoad, type PlannedModel } from "./plan-loads.ts";
import { KeptModels } from "./kept-models.ts";
import type { ModelPulls } from "./model-pulls.ts";
import type { RuntimeWatch } from "./watch-runtimes.ts";

interface LoadOptions {
  readonly runtime: RuntimeWatch;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the requests for each model that has some. */
  readonly demand: () => ReadonlyMap<string, ModelDemand>;
  /** Called when a model became ready, or is not any more, or its load went on. */
  readonly onChange: () => void;
  /** Undefined if the owner lets no models be pulled. */
  readonly pulls?: ModelPulls | undefined;
}

/** Why a model could not be loaded, and until when that refuses its requests. */
interface Failure {
  readonly fault: Fault;
  readonly untilMs: number;
  readonly times: number;
}

/** A load that is under way. */
interface Load {
  readonly model: string;
  readonly begunAtMs: number;
  readonly expectedMs: number;
}

/** The time that a load goes on after it was expected to end, as a part of the time so far. */
const overduePart = 0.1;

/** How long a model that could not be loaded is not tried again: twice as long after each failure. */
const failureStandsMs = 5_000;
const failureStandsMaxMs = 300_000;

/**
 * Loads the models that requests wait for, and unloads others to make room. A load belongs to the agent: it goes on when
 * its clients leave and when their gateway dies. One model is loaded at a time.
 */
export class ModelLoads {
  readonly #options: LoadOptions;
  readonly #failures = new Map<string, Failure>();
  readonly #stop = new AbortController();
  /** The models that begin no further answer, since they have to make room. */
  #held: ReadonlySet<string> = new Set();
  /** The loads since this agent started. */
  readonly counts: LoadCounts = { loads: 0, loadMs: 0, failures: 0, unloads: { request: 0, keep: 0, other: 0 } };
  #load: Load | undefined;
  readonly #kept: KeptModels;
  #isLooking = false;
  /** True if something changed during a look, so that another one follows. */
  #isAskedAgain = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { runtime, clock } = options;
    this.#kept = new KeptModels({ silentAtMs: (each) => runtime.silentAtMs(each), clock });
    runtime.onChange(() => {
      this.counts.unloads.other += this.#kept.seen(runtime.offer?.served ?? []);
      options.onChange();
    });
  }

  /** The load that is under way, and the time that it is expected to go on. */
  get news(): LoadNews | undefined {
    if (this.#load === undefined) return undefined;
    const { model, begunAtMs, expectedMs } = this.#load;
    const goneMs = this.#options.clock.now() - begunAtMs;
    // A load that takes longer than expected has still a part before it.
    const totalMs = Math.max(expectedMs, (1 + overduePart) * goneMs);
    const leftMs = Math.round(Math.max(1_000, totalMs - goneMs));
    return { model, percent: Math.floor((100 * goneMs) / totalMs), leftMs };
  }

  /** True if requests for a model may begin. A runtime that cannot be told to load loads by itself. */
  isReady(id: string): boolean {
    const served = this.#options.runtime.offer?.find(id);
    return served === undefined || !isLoadable(served) || (served.model.loaded === true && !this.#held.has(id));
  }

  /** Returns why requests for a model are refused: it could not be loaded lately. */
  refusalOf(id: string): Fault | undefined {
    const failure = this.#failures.get(id);
    return failure !== undefined && failure.untilMs > this.#options.clock.now() ? failure.fault : undefined;
  }

  /** Keeps these models in memory from now on, and no others. */
  keep(models: readonly string[]): void {
    this.#kept.keep(models);
    this.#options.onChange();
  }

  isKept(id: string): boolean {
    return this.#kept.isWanted(id);
  }

  /** The models that are kept in memory, and why those are not there that are not. */
  get keeps(): KeepFacts[] {
    return this.#kept.told((id) => {
      const pull = this.#options.pulls?.find(id);
      if (this.#load?.model === id) return { state: "loading" };
      if (pull?.state === "pulling") return { state: "pulling" };
      const failure = pull?.state === "failed" ? pull.status : this.refusalOf(id)?.message;
      if (failure !== undefined) return { state: "failed", why: failure.slice(0, problemCharactersMax) };
      if (this.#options.runtime.offer?.find(id) !== undefined) return { state: "waits", why: "no room in memory yet" };
      return { state: "missing", why: "it is not installed, and the owner lets nothing be pulled" };
    });
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
    if (this.#held.size > 0 || this.#kept.names.some((id) => this.#isDue(id))) return true;
    for (const [id, { waiting }] of this.#options.demand()) if (waiting > 0 && !this.isReady(id)) return true;
    return false;
  }

  /** True if something is to be done so that a kept model is in memory, and stays there. */
  #isDue(id: string): boolean {
    if (!this.#kept.isWanted(id) || this.refusalOf(id) !== undefined) return false;
    const served = this.#options.runtime.offer?.find(id);
    if (served === undefined) return this.#mayPull(id);
    return isLoadable(served) && (served.model.loaded !== true || this.#kept.isLoose(id));
  }

  #mayPull(id: string): boolean {
    const { pulls, runtime } = this.#options;
    // One that has ended a moment ago is not listed yet, or has failed and waits for its next turn.
    if (pulls === undefined || pulls.find(id) !== undefined) return false;
    return runtime.offer?.runtimes.some(({ manages }) => manages?.pull !== undefined) ?? false;
  }

  /** Pulls the kept models that are not installed, and has runtimes hold those that they would let go of. */
  async #keepUp(): Promise<void> {
    const { runtime, pulls } = this.#options;
    for (const id of this.#kept.names.filter((each) => this.#isDue(each))) {
      const served = runtime.offer?.find(id);
      const pulling = runtime.offer?.runtimes.find(({ manages }) => manages?.pull !== undefined);
      if (served === undefined && pulling !== undefined) pulls?.pull(id, pulling, {}).catch(() => undefined);
      if (served?.model.loaded !== true) continue;
      await this.#manage("load", id).then(
        () => this.#kept.loaded(id),
        (error: unknown) => this.#failed(id, error),
      );
    }
  }

  async #look(): Promise<void> {
    const { runtime, log, onChange } = this.#options;
    try {
      await this.#keepUp();
      const { totalMb, freeMb } = await runtime.facts.readMemory();
      // No request begins between the plan and the hold of those that go.
      const models = this.#planned();
      const takenMb = models.reduce((sum, { isLoaded, memoryMb }) => sum + (isLoaded ? memoryMb : 0), 0);
      const room = { totalMb, freeMb: Math.min(freeMb, totalMb - takenMb) };
      const step = planLoad(models, room);
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
    const { runtime, clock, log, onChange } = this.#options;
    const { model } = load;
    const begunAtMs = clock.now();
    this.#load = { model, begunAtMs, expectedMs: load.loadMs };
    onChange();
    try {
      for (const { model: other } of unload) await this.#unload(other, load);
      const { freeMb } = await runtime.facts.readMemory();
      await this.#loadOrMakeRoom(load);
      const tookMb = freeMb - (await runtime.facts.readMemory()).freeMb;
      await this.#lookAgain();
      // Requests wait until the runtime shows the model, so that counts too.
      const ms = Math.round(clock.now() - begunAtMs);
      const served = runtime.offer?.find(model);
      if (served !== undefined) runtime.facts.loaded(served.model, ms, tookMb);
      this.#failures.delete(model);
      this.#kept.loaded(model);
      this.counts.loads += 1;
      this.counts.loadMs += ms;
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
  async #loadOrMakeRoom(load: PlannedModel): Promise<void> {
    const { model } = load;
    try {
      await this.#manage("load", model);
    } catch (error) {
      await this.#lookAgain();
      const isUnused = (each: PlannedModel): boolean =>
        each.isLoaded && !each.isKept && each.running + each.waiting === 0;
      const unused = this.#planned().filter((each) => each.model !== model && isUnused(each));
      if (unused.length === 0) throw error;
      this.#held = new Set([...this.#held, ...unused.map((each) => each.model)]);
      for (const { model: other } of unused) await this.#unload(other, load);
      await this.#manage("load", model);
    }
  }

  async #unload(model: string, wanted: PlannedModel): Promise<void> {
    await this.#manage("unload", model);
    this.counts.unloads[wanted.waiting > 0 ? "request" : "keep"] += 1;
  }

  async #manage(action: "load" | "unload", id: string): Promise<void> {
    const { runtime, clock, timing, onChange } = this.#options;
    const served = runtime.offer?.find(id);
    const manage = served?.runtime.manages?.[action];
    if (served === undefined || manage === undefined) throw new Error(`the runtime of ${id} is gone`);
    // A model that answers a proof cannot be unloaded.
    await runtime.seams.interrupt();
    if (action === "unload") this.#kept.unloading(id);
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
    const times = (this.#failures.get(model)?.times ?? 0) + 1;
    this.counts.failures += 1;
    const standsMs = Math.min(failureStandsMaxMs, failureStandsMs * 2 ** (times - 1));
    const cause = internal ?? (error instanceof Fault ? message : originOf(error));
    log.warn({ model, code, cause, times, standsMs }, "a model could not be loaded");
    const told = `The model could not be loaded on its machine${error instanceof Fault ? `: ${message}` : "."}`;
    const fault = new Fault("upstream_error", { message: told, internal: cause, cause: error });
    this.#failures.set(model, { fault, untilMs: clock.now() + standsMs, times });
  }

  /** Returns the models that can be loaded and unloaded. No request waits for one that could not be loaded lately. */
  #planned(): PlannedModel[] {
    const { runtime, demand } = this.#options;
    const wishes = { demands: demand(), isKept: (id: string) => this.isKept(id) };
    return runtime.facts
      .planned((runtime.offer?.served ?? []).filter(isLoadable), wishes)
      .map((each) =>
        this.refusalOf(each.model) === undefined ? each : { ...each, waiting: 0, isKept: each.isLoaded },
      );
  }
}

/** True if the runtime says which models are in memory, and can be told to load and unload them. */
function isLoadable({ runtime, model }: ServedModel): boolean {
  return model.loaded !== undefined && runtime.manages?.load !== undefined && runtime.manages.unload !== undefined;
}
