import { Fault, originOf } from "#shared/fault/fault.ts";
import { abortAfter } from "#shared/process/clock.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import { type LoadNews, retryAfterSecondsMax } from "#shared/protocol/frame-payload.ts";
import { type KeepFacts, type LoadCounts, type MemoryFacts, problemCharactersMax } from "#shared/protocol/presence.ts";
import type { AgentContext } from "../context.ts";
import type { ModelDemand, Wishes } from "./model-facts.ts";
import { ModelPulls } from "./model-pulls.ts";
import { ModelStates } from "./model-states.ts";
import type { ServedModel } from "./model-set.ts";
import { type LoadStep, planLoad, type PlannedModel } from "./plan-loads.ts";
import type { RuntimeWatch } from "./watch-runtimes.ts";

export interface ReconcilerOptions extends AgentContext {
  readonly runtime: RuntimeWatch;
  readonly jobs: WaitingJobs;
  /** True if the owner lets the agent decide what is loaded. Otherwise each runtime loads models as it likes. */
  readonly decidesLoads?: boolean | undefined;
  /** The model actions that this machine's owner allows operators: pulls are among them or not. */
  readonly manage: ReadonlySet<ManageAction>;
}

/** The jobs that want models in memory. */
interface WaitingJobs {
  /** Returns the requests for each model that has some. */
  demand(): ReadonlyMap<string, ModelDemand>;
  /** Called when a model became ready, or is not any more, or its load went on. */
  look(): void;
}

/** The time that a load goes on after it was expected to end, as a part of the time so far. */
const overduePart = 0.1;

/**
 * Brings the models into memory that requests wait for or that the site keeps there. It pulls kept models first, and unloads
 * others to make room. One model is loaded at a time. A load goes on when its clients leave and when their gateway dies.
 */
export class ModelReconciler {
  /** Undefined where the owner lets nothing be pulled. */
  readonly pulls: ModelPulls | undefined;
  /** The loads since this agent started. */
  readonly counts: LoadCounts = { loads: 0, loadMs: 0, failures: 0, unloads: { request: 0, keep: 0, other: 0 } };
  readonly #options: ReconcilerOptions;
  readonly #states: ModelStates;
  readonly #stop = new AbortController();
  /** The models that begin no further answer, since they have to make room. */
  #held: ReadonlySet<string> = new Set();
  /** The load that is under way. */
  #load: { readonly model: string; readonly begunAtMs: number; readonly expectedMs: number } | undefined;
  #isLooking = false;
  /** True if something changed during a look, so that another one follows. */
  #isAskedAgain = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#states = new ModelStates(options);
    this.pulls = options.manage.has("pull") ? new ModelPulls(options) : undefined;
    options.runtime.onChange(() => {
      this.counts.unloads.other += this.#states.look();
      options.jobs.look();
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

  /** The facts of the memory for presence; undefined until it was read. */
  get facts(): MemoryFacts | undefined {
    const { runtime, decidesLoads } = this.#options;
    const { kept } = this.#states;
    const pulls = this.pulls?.told() ?? [];
    return runtime.facts.told(runtime.offer?.served ?? [], this.#wishes, {
      ...(decidesLoads && { isPlaced: true, counts: this.counts }),
      ...(kept.length > 0 && { keeps: kept.map((model) => this.#keepOf(model)) }),
      ...(pulls.length > 0 && { pulls }),
      ...(this.#pull !== undefined && { canPull: true }),
      ...(this.#load !== undefined && { loading: this.news }),
    });
  }

  /** True if requests for a model may begin. A runtime that cannot be told to load loads by itself. */
  isReady(id: string): boolean {
    const served = this.#options.runtime.offer?.byId.get(id);
    return served === undefined || !isLoadable(served) || (served.model.loaded === true && !this.#held.has(id));
  }

  /** Returns why a request that waits for a model since `sinceMs` waits no longer: it could not be loaded, or not in time. */
  refusalOf(model: string, sinceMs: number): Fault | undefined {
    const { clock, timing } = this.#options;
    const failed = this.#states.failureOf(model);
    if (failed !== undefined || clock.now() - sinceMs < timing.loadWaitMs) return failed;
    const news = this.#load?.model === model ? this.news : undefined;
    const leftSeconds = news && Math.ceil(news.leftMs / 1_000);
    const state = news
      ? `is being loaded: ${news.percent} %, about ${leftSeconds} s are left`
      : "waits for room in memory, which other models use";
    const message = `The model ${state}. The request waited ${timing.loadWaitMs} ms for it (loadWaitMs); send it again.`;
    const retryAfterSeconds = leftSeconds && Math.min(retryAfterSecondsMax, leftSeconds);
    return new Fault("model_loading", { message, param: "model", retryAfterSeconds });
  }

  /** Keeps these models in memory from now on, and no others, if the owner lets the agent decide what is loaded. */
  keep(models: readonly string[]): void {
    if (!this.#options.decidesLoads) return;
    this.#states.keep(models);
    this.#options.jobs.look();
  }

  /** Takes the next step, if one is due. Called whenever requests come and go, and once per beat. */
  look(): void {
    this.#isAskedAgain = this.#isLooking;
    if (this.#isLooking || !this.#isDue()) return;
    this.#isLooking = true;
    void this.#step().finally(() => {
      this.#isLooking = false;
      if (this.#isAskedAgain) this.look();
    });
  }

  close(): void {
    this.pulls?.close();
    this.#stop.abort(new Fault("shutting_down", { message: "The agent is stopping." }));
  }

  get #wishes(): Wishes {
    return { demands: this.#options.jobs.demand(), isKept: (id) => this.#states.isKept(id) };
  }

  /** Pulls a model. Undefined if no runtime can do that, or if the owner lets nothing be pulled. */
  get #pull(): ((id: string) => void) | undefined {
    const { pulls } = this;
    const run = this.#options.runtime.offer?.runtimes.find(({ manages }) => manages?.pull)?.manages?.pull;
    return run && pulls && ((id) => void pulls.pull(id, run));
  }

  /** Returns how a kept model is, and why it is not in memory if it is not. */
  #keepOf(model: string): KeepFacts {
    if (this.#states.of(model).seenOn !== undefined) return { model, state: "loaded" };
    const minutes = Math.ceil(this.#states.suspendedForMs(model) / 60_000);
    if (minutes > 0) return { model, state: "suspended", why: `somebody unloaded it; it comes back in ${minutes} min` };
    const pull = this.pulls?.find(model);
    if (this.#load?.model === model) return { model, state: "loading" };
    if (pull?.state === "pulling") return { model, state: "pulling" };
    const failure = pull?.state === "failed" ? pull.status : this.#states.failureOf(model)?.message;
    if (failure !== undefined) return { model, state: "failed", why: failure.slice(0, problemCharactersMax) };
    if (this.#options.runtime.offer?.byId.get(model)) return { model, state: "waits", why: "no room in memory yet" };
    return { model, state: "missing", why: "it is not installed, and the owner lets nothing be pulled" };
  }

  /** True if something is to be done: for a request that waits, or for a kept model. */
  #isDue(): boolean {
    if (this.#held.size > 0 || this.#states.kept.some((id) => this.#isKeepDue(id))) return true;
    return [...this.#options.jobs.demand()].some(([id, { waiting }]) => waiting > 0 && !this.isReady(id));
  }

  /** True if something is to be done so that a kept model is in memory, and stays there. */
  #isKeepDue(id: string): boolean {
    if (!this.#states.isKept(id) || this.#states.failureOf(id) !== undefined) return false;
    const served = this.#options.runtime.offer?.byId.get(id);
    // A pull that has ended a moment ago is not listed yet, or has failed and waits for its next turn.
    if (served === undefined) return this.#pull !== undefined && this.pulls?.find(id) === undefined;
    const { seenOn, isOurs } = this.#states.of(id);
    return isLoadable(served) && (served.model.loaded !== true || (seenOn !== undefined && !isOurs));
  }

  async #step(): Promise<void> {
    const { runtime, jobs, log } = this.#options;
    try {
      await this.#keepUp();
      const { totalMb, freeMb } = await runtime.facts.readMemory();
      // No request begins between the plan and the hold of those that go.
      const models = this.#planned();
      const takenMb = models.reduce((sum, { isLoaded, memoryMb }) => sum + (isLoaded ? memoryMb : 0), 0);
      const step = planLoad(models, { totalMb, freeMb: Math.min(freeMb, totalMb - takenMb) });
      const goes = new Set(step?.unload.map(({ model }) => model));
      if (goes.symmetricDifference(this.#held).size > 0) {
        this.#held = goes;
        jobs.look();
      }
      if (step?.isDue) await this.#take(step);
    } catch (error) {
      log.error({ err: error }, "the loads of models could not be planned");
    }
  }

  /** Pulls the kept models that are not installed, and has runtimes hold those that they would let go of. */
  async #keepUp(): Promise<void> {
    for (const id of this.#states.kept.filter((each) => this.#isKeepDue(each))) {
      const served = this.#options.runtime.offer?.byId.get(id);
      if (served === undefined) this.#pull?.(id);
      if (served?.model.loaded !== true) continue;
      await this.#manage("load", id).then(
        () => this.#states.loaded(id),
        (error: unknown) => this.#failed(id, error),
      );
    }
  }

  async #take({ load, unload }: LoadStep): Promise<void> {
    const { runtime, jobs, clock, log } = this.#options;
    const { model } = load;
    const begunAtMs = clock.now();
    this.#load = { model, begunAtMs, expectedMs: load.loadMs };
    jobs.look();
    try {
      for (const { model: other } of unload) await this.#unload(other, load);
      const { freeMb } = await runtime.facts.readMemory();
      await this.#loadOrMakeRoom(load);
      const tookMb = freeMb - (await runtime.facts.readMemory()).freeMb;
      await this.#lookAgain();
      // Requests wait until the runtime shows the model, so that counts too.
      const ms = Math.round(clock.now() - begunAtMs);
      const served = runtime.offer?.byId.get(model);
      if (served !== undefined) runtime.facts.loaded(served.model, ms, tookMb);
      this.#states.loaded(model);
      this.counts.loads += 1;
      this.counts.loadMs += ms;
      log.info({ model, ms, unloaded: unload.map((each) => each.model) }, "a model was loaded");
    } catch (error) {
      this.#failed(model, error);
      await this.#lookAgain();
    } finally {
      this.#load = undefined;
      this.#held = new Set();
      jobs.look();
    }
  }

  /** Asks the runtimes what is in memory. A look that had begun before is shared and may come too early. */
  async #lookAgain(): Promise<void> {
    for (let looks = 0; looks < 2; looks += 1) await this.#options.runtime.ask().catch(() => undefined);
  }

  /** Loads a model. If that fails, all models that nobody uses make room, and it is tried once more. */
  async #loadOrMakeRoom(load: PlannedModel): Promise<void> {
    try {
      await this.#manage("load", load.model);
    } catch (error) {
      await this.#lookAgain();
      const unused = this.#planned().filter(
        ({ model, isLoaded, isKept, running, waiting }) =>
          model !== load.model && isLoaded && !isKept && running + waiting === 0,
      );
      if (unused.length === 0) throw error;
      this.#held = new Set([...this.#held, ...unused.map(({ model }) => model)]);
      for (const { model } of unused) await this.#unload(model, load);
      await this.#manage("load", load.model);
    }
  }

  async #unload(model: string, wanted: PlannedModel): Promise<void> {
    await this.#manage("unload", model);
    this.counts.unloads[wanted.waiting > 0 ? "request" : "keep"] += 1;
  }

  async #manage(action: "load" | "unload", id: string): Promise<void> {
    const { runtime, jobs, clock, timing } = this.#options;
    const { runtime: on, ownId: model } = runtime.offer?.byId.get(id) ?? {};
    const manage = on?.manages?.[action];
    if (model === undefined || manage === undefined) throw new Error(`the runtime of ${id} is gone`);
    // A model that answers a proof cannot be unloaded.
    await runtime.seams.interrupt();
    if (action === "unload") this.#states.leaving(id);
    const message = `The runtime did not ${action} a model within ${timing.manageSilentMs} ms (manageSilentMs).`;
    using late = abortAfter(clock, timing.manageSilentMs, () => new Fault("upstream_timeout", { message }));
    const signal = AbortSignal.any([this.#stop.signal, late.signal]);
    await manage({ action, model, signal, onProgress: () => jobs.look() });
  }

  #failed(model: string, error: unknown): void {
    const { internal, message, code } = Fault.from(error);
    const cause = internal ?? (error instanceof Fault ? message : originOf(error));
    const told = `The model could not be loaded on its machine${error instanceof Fault ? `: ${message}` : "."}`;
    const fault = new Fault("upstream_error", { message: told, internal: cause, cause: error });
    const { times, standsMs } = this.#states.failed(model, fault);
    this.counts.failures += 1;
    this.#options.log.warn({ model, code, cause, times, standsMs }, "a model could not be loaded");
  }

  /** Returns the models that can be loaded and unloaded. No request waits for one that could not be loaded lately. */
  #planned(): PlannedModel[] {
    const { facts, offer } = this.#options.runtime;
    return facts
      .planned((offer?.served ?? []).filter(isLoadable), this.#wishes)
      .map((each) =>
        this.#states.failureOf(each.model) === undefined ? each : { ...each, waiting: 0, isKept: each.isLoaded },
      );
  }
}

/** True if the runtime says which models are in memory, and can be told to load and unload them. */
function isLoadable({ runtime, model }: ServedModel): boolean {
  return model.loaded !== undefined && runtime.manages?.load !== undefined && runtime.manages.unload !== undefined;
}
