import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { type LoadNews, retryAfterSecondsMax } from "#shared/protocol/frame-payload.ts";
import { jsonRecord } from "#shared/protocol/frame.ts";
import { abortAfter, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { ModelDemand } from "../models/model-facts.ts";
import { ModelPulls } from "../models/model-pulls.ts";
import { ModelLoads } from "../models/model-loads.ts";
import type { ServedModel } from "../models/model-set.ts";
import type { RuntimeWatch } from "../models/watch-runtimes.ts";
import type { RuntimeWork } from "../models/watch-source.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { AgentJob, Outcome } from "./agent-job.ts";
import { manageModels, runJob } from "./run-job.ts";
import { LearntSlots, Schedule } from "./schedule.ts";

export interface RunnerOptions {
  readonly runtime: RuntimeWatch;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly queueMax: number;
  /** The model actions that this machine's owner allows operators. */
  readonly manage: ReadonlySet<ManageAction>;
  /** True if the owner lets the agent decide what is loaded. */
  readonly places?: boolean | undefined;
}

/** The part of a presence that jobs decide. */
type MachineLoad = Pick<Presence, "slots" | "guessesSlots" | "running" | "queued" | "queueMax" | "strays" | "memory">;

/**
 * Queues jobs, runs them on their runtimes and ends them. Jobs wait in lanes. Each lane has as many slots as its runtime
 * takes jobs, as far as that is known.
 */
export class JobRunner {
  readonly #options: RunnerOptions;
  readonly #jobs: ReadonlyMap<string, AgentJob>;
  readonly #schedule: Schedule<AgentJob>;
  readonly #learnt = new LearntSlots();
  readonly #strays: StrayWatch;
  /** Undefined where each runtime loads models as it likes. */
  readonly #loads: ModelLoads | undefined;
  /** Undefined where the owner lets nothing be pulled. */
  readonly #pulls: ModelPulls | undefined;

  constructor(options: RunnerOptions, jobs: ReadonlyMap<string, AgentJob>) {
    this.#options = options;
    this.#jobs = jobs;
    this.#schedule = new Schedule(options);
    const ownRunning = (runtime: Runtime): number => {
      const proofs = options.runtime.seams.provesOn(runtime) ? 1 : 0;
      return this.#on(runtime).reduce((sum, { width }) => sum + width, proofs);
    };
    this.#strays = new StrayWatch({ ...options, ownRunning });
    options.runtime.heedWork((runtime) => this.#workOn(runtime));
    options.runtime.onChange(() => this.#resize());
    const pulls = options.manage.has("pull") ? new ModelPulls(options) : undefined;
    this.#pulls = pulls;
    const heed = { demand: () => this.#demand(), onChange: () => this.#readyAnew() };
    options.runtime.seams.heedJobs(() => this.#isIdle());
    this.#loads = options.places ? new ModelLoads({ ...options, ...heed, pulls }) : undefined;
  }

  get load(): MachineLoad {
    const { runtime, queueMax } = this.#options;
    const { running, queued } = this.#schedule;
    const { slots = 0, served = [], runtimes = [] } = runtime.offer ?? {};
    const loads = this.#loads;
    const canPull = this.#pulls !== undefined && runtime.offer?.runtimes.some(({ manages }) => manages?.pull);
    const pulls = this.#pulls?.told() ?? [];
    const memory = runtime.facts.told(served, {
      demands: this.#demand(),
      ...(loads && { isKept: (id) => loads.isKept(id), isPlaced: true, counts: loads.counts }),
      ...(loads && loads.keeps.length > 0 && { keeps: loads.keeps }),
      ...(pulls.length > 0 && { pulls }),
      ...(canPull && { canPull }),
      ...(loads?.news && { loading: loads.news }),
    });
    return {
      slots,
      ...(runtimes.some(({ guessesSlots }) => guessesSlots) && { guessesSlots: true as const }),
      running,
      queued,
      queueMax,
      strays: this.#strays.strays,
      ...(memory && { memory }),
    };
  }

  get loading(): LoadNews | undefined {
    return this.#loads?.news;
  }

  /** Returns the places of all waiting jobs, each counted from 1 in its own lane. */
  places(): ReadonlyMap<AgentJob, number> {
    return this.#schedule.places();
  }

  /** Queues a job that a model answers, and starts the jobs whose turn it is. Returns false when the queue is full. */
  submit(job: AgentJob, served: ServedModel): boolean {
    const { lane } = served;
    void this.#options.runtime.seams.interrupt();
    this.#start(this.#schedule.resize(lane, this.#slotsOf(served)));
    const turn = { lane, sender: job.head.keyId ?? "", ready: this.#isReady(job) };
    const { outcome, start } = this.#schedule.submit(job, turn);
    this.#start(start);
    this.#options.runtime.facts.asked(served.model.id);
    // The caller adds the job to the others first.
    if (!turn.ready) queueMicrotask(() => this.#readyAnew());
    return outcome === "taken";
  }

  makeReady(job: AgentJob): void {
    this.#start(this.#schedule.setReady(job, this.#isReady(job)));
    this.#readyAnew();
  }

  /** Runs a job of a kind that takes no slot, and so waits for nothing. */
  runBeside(job: AgentJob): Promise<void> {
    const { head, served } = job;
    if (head.kind === "manage") return this.#manage(job);
    return head.kind === "count" && served !== undefined ? this.#count(job, served) : this.#tellModels(job);
  }

  async #count(job: AgentJob, served: ServedModel): Promise<void> {
    job.begin("prefill");
    job.width = 0;
    this.#conclude(job, await runJob(job, served));
  }

  async #tellModels(job: AgentJob): Promise<void> {
    try {
      const catalogue = await this.#options.runtime.ask();
      void job.frames.write([jsonRecord(catalogue)], 0);
      this.#conclude(job, { outcome: "end" });
    } catch (thrown) {
      this.end(job, Fault.from(thrown));
    }
  }

  async #manage(job: AgentJob): Promise<void> {
    const { runtime, manage: allowed } = this.#options;
    job.begin("loading");
    await runtime.seams.interrupt();
    this.#conclude(job, await manageModels(job, { offer: runtime.offer, allowed, pulls: this.#pulls }));
  }

  /** Keeps these models in memory from now on, if the owner lets the agent decide what is loaded. */
  keep(models: readonly string[]): void {
    this.#loads?.keep(models);
  }

  /** Ends a job in any state. A running job is aborted and reports its own outcome; a waiting job ends here. */
  stop(job: AgentJob, fault: Fault): void {
    job.abort(fault);
    if (job.startedAtMs === undefined) this.end(job, fault);
  }

  end(job: AgentJob, fault: Fault): void {
    if (job.state === "ended") return;
    this.#conclude(job, { outcome: "fault", fault });
    this.#start(this.#schedule.remove(job));
    this.#loads?.look();
  }

  /** Follows the runtimes, which come and go. The caller calls it once per beat. */
  tick(): void {
    this.#resize();
    this.#strays.tick();
    this.#readyAnew();
  }

  close(): void {
    this.#pulls?.close();
    this.#loads?.close();
  }

  #isReady({ state, head }: AgentJob): boolean {
    return state !== "receiving" && (this.#loads?.isReady(head.model ?? "") ?? true);
  }

  /** Begins the jobs whose models have come into memory, and ends those whose models could not be loaded. */
  #readyAnew(): void {
    const loads = this.#loads;
    if (loads === undefined || this.#schedule.queued === 0) return loads?.look();
    for (const job of this.#jobs.values()) {
      if (!isWaiting(job)) continue;
      const model = job.head.model ?? "";
      const isReady = loads.isReady(model);
      const refusal = isReady ? undefined : this.#refusalOf(job, loads);
      if (refusal !== undefined) {
        this.end(job, refusal);
        continue;
      }
      if (!isReady) job.awaitLoad(loads.news?.model === model);
      this.#start(this.#schedule.setReady(job, isReady));
    }
    loads.look();
  }

  /** Returns why a job waits no longer for its model: it could not be loaded, or did not come into memory in time. */
  #refusalOf({ head, acceptedAtMs }: AgentJob, loads: ModelLoads): Fault | undefined {
    const { clock, timing } = this.#options;
    const { model = "" } = head;
    const failed = loads.refusalOf(model);
    if (failed !== undefined || clock.now() - acceptedAtMs < timing.loadWaitMs) return failed;
    const { news } = loads;
    const isUnderWay = news?.model === model;
    const state = isUnderWay
      ? `is being loaded: ${news.percent} %, about ${Math.ceil(news.leftMs / 1_000)} s are left`
      : "waits for room in memory, which other models use";
    const retryAfterSeconds = isUnderWay ? Math.min(retryAfterSecondsMax, Math.ceil(news.leftMs / 1_000)) : undefined;
    const message = `The model ${state}. The request waited ${timing.loadWaitMs} ms for it (loadWaitMs); send it again.`;
    return new Fault("model_loading", { message, param: "model", retryAfterSeconds });
  }

  /** Returns the jobs for each model: those that run, and those that wait for a slot or for their model. */
  #demand(): ReadonlyMap<string, ModelDemand> {
    const demand = new Map<string, ModelDemand>();
    for (const job of this.#jobs.values()) {
      const { head, served, startedAtMs, state, acceptedAtMs } = job;
      const runs = startedAtMs !== undefined && state !== "ended" && served !== undefined;
      const waits = isWaiting(job);
      if (!runs && !waits) continue;
      const { running, waiting, waitingSinceMs } = demand.get(head.model ?? "") ?? nobody;
      demand.set(head.model ?? "", {
        running: running + (runs ? 1 : 0),
        waiting: waiting + (waits ? 1 : 0),
        waitingSinceMs: waits ? Math.min(acceptedAtMs, waitingSinceMs ?? Infinity) : waitingSinceMs,
      });
    }
    return demand;
  }

  #start(jobs: readonly AgentJob[]): void {
    for (const job of jobs) void this.#run(job);
  }

  async #run(job: AgentJob): Promise<void> {
    job.begin("prefill");
    try {
      // The runtime may have come and gone while the job was queued.
      const served = this.#options.runtime.offer?.find(job.head.model ?? "");
      if (served === undefined) {
        throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
      }
      job.served = served;
      const outcome = await runJob(job, served);
      if (wasTooMuch(job, outcome) && this.#mayWait(served)) {
        job.putBack();
        this.#start(this.#schedule.putBack(job));
        return;
      }
      this.#conclude(job, outcome);
    } catch (thrown) {
      this.end(job, Fault.from(thrown));
    }
    this.#start(this.#schedule.remove(job));
    this.#loads?.look();
    if (job.signal.aborted && job.served !== undefined) this.#strays.cancelled(job.served.runtime, job.width);
  }

  /**
   * Narrows the lane of a model whose runtime refused a job as too much. Returns true if other jobs run there: their
   * end makes room, so the job can wait for another turn.
   */
  #mayWait(served: ServedModel): boolean {
    const others = this.#schedule.runningIn(served.lane) - 1;
    this.#learnt.refused(served.lane, others, this.#options.clock.now());
    this.#start(this.#schedule.resize(served.lane, this.#slotsOf(served)));
    return others > 0;
  }

  /** Resizes all lanes: runtimes come and go, and their slots are learnt or reported anew. */
  #resize(): void {
    const lanes = new Map<string, ServedModel>();
    for (const { served, state } of this.#jobs.values())
      if (served && state !== "ended") lanes.set(served.lane, served);
    for (const [lane, served] of lanes) this.#start(this.#schedule.resize(lane, this.#slotsOf(served)));
  }

  #slotsOf({ lane, runtime }: ServedModel): number {
    return this.#learnt.limit(lane, runtime.slots, this.#options.clock.now());
  }

  /**
   * Ends a job and logs how it ended: a failing machine is the operator's matter, an invalid request is not. The
   * gateway's log has a line with the job's id that names the request.
   */
  #conclude(job: AgentJob, outcome: Outcome): void {
    job.end(outcome);
    const { log } = this.#options;
    const ties = { job: job.head.id, key: job.head.keyId, model: job.head.model, gateway: job.gateway };
    if (outcome.outcome === "end") {
      log.debug(ties, "job done");
      return;
    }
    const { code, reason: internal } = outcome.fault;
    const fields = { ...ties, code, internal };
    if (code === "cancelled") log.debug(fields, "job cancelled");
    else if (faultEntry(code).status < 500) log.info(fields, "job refused");
    else log.warn(fields, "job failed");
  }

  /** True if no job is under way, and no model is being loaded for one. */
  #isIdle(): boolean {
    return this.#loads?.news === undefined && [...this.#jobs.values()].every(({ state }) => state === "ended");
  }

  #workOn(runtime: Runtime): RuntimeWork {
    const jobs = this.#on(runtime);
    const heardAtMs = jobs.map((job) => (job.firstTokenAtMs === undefined ? -Infinity : job.progressAtMs));
    return { running: jobs.length > 0, heardAtMs: Math.max(-Infinity, ...heardAtMs) };
  }

  #on(runtime: Runtime): AgentJob[] {
    return [...this.#jobs.values()].filter(
      ({ served, startedAtMs, state }) => served?.runtime === runtime && startedAtMs !== undefined && state !== "ended",
    );
  }
}

const nobody: ModelDemand = { running: 0, waiting: 0, waitingSinceMs: undefined };

/** True for a job of a model that is here whole and has not begun. */
function isWaiting({ served, startedAtMs, state }: AgentJob): boolean {
  return served !== undefined && startedAtMs === undefined && state !== "ended" && state !== "receiving";
}

/** True if a runtime refused a job before its first token because the runtime is busy with other work. */
function wasTooMuch(job: AgentJob, outcome: Outcome): boolean {
  const isRefused = outcome.outcome === "fault" && outcome.fault.code === "server_is_overloaded";
  return isRefused && job.firstTokenAtMs === undefined && !job.signal.aborted;
}

interface StraysOptions extends Pick<RunnerOptions, "timing" | "clock" | "log"> {
  /** Returns how many sequences a runtime works on for jobs of this agent. */
  readonly ownRunning: (runtime: Runtime) => number;
}

/** A runtime that may still work on cancelled requests. Its strays are not reported before `worriesAtMs`. */
interface Suspicion {
  readonly worriesAtMs: number;
  /** Cancelled sequences. No more than these can be strays: a runtime may work for other clients too. */
  readonly cancelled: number;
  strays: number;
}

/**
 * Checks that cancelled requests really end. After each cancel it polls a runtime that can report its work. It stops
 * when the runtime works on no more requests than this agent runs there. Requests that still go on after `straysWaitMs`
 * are reported as strays.
 */
class StrayWatch {
  readonly #options: StraysOptions;
  readonly #suspicions = new Map<Runtime, Suspicion>();
  #asking = false;

  constructor(options: StraysOptions) {
    this.#options = options;
  }

  /** Requests that runtimes go on with although no job here waits for them. */
  get strays(): number {
    let strays = 0;
    for (const suspicion of this.#suspicions.values()) strays += suspicion.strays;
    return strays;
  }

  /** Notes a cancelled job for which the runtime worked on this many sequences. */
  cancelled(runtime: Runtime, sequences: number): void {
    if (runtime.working === undefined) return;
    const { clock, timing } = this.#options;
    const { strays, cancelled } = this.#suspicions.get(runtime) ?? { strays: 0, cancelled: 0 };
    const worriesAtMs = clock.now() + timing.straysWaitMs;
    this.#suspicions.set(runtime, { worriesAtMs, strays, cancelled: cancelled + sequences });
  }

  /** Polls the suspected runtimes. The caller calls it once per beat; without a suspicion it does nothing. */
  tick(): void {
    if (this.#asking || this.#suspicions.size === 0) return;
    this.#asking = true;
    const asked = [...this.#suspicions].map(([runtime, suspicion]) => this.#ask(runtime, suspicion));
    void Promise.all(asked).finally(() => {
      this.#asking = false;
    });
  }

  async #ask(runtime: Runtime, suspicion: Suspicion): Promise<void> {
    const { clock, timing, log, ownRunning } = this.#options;
    using late = abortAfter(clock, timing.runtimeAnswerMs, () => new Error("the runtime does not answer"));
    try {
      const working = (await runtime.working?.(late.signal)) ?? 0;
      const strays = Math.min(suspicion.cancelled, Math.max(0, working - ownRunning(runtime)));
      if (this.#suspicions.get(runtime) !== suspicion) return;
      if (strays === 0) this.#suspicions.delete(runtime);
      else if (clock.now() >= suspicion.worriesAtMs) {
        if (suspicion.strays === 0) log.warn({ runtime: runtime.name, strays }, "a cancelled request did not stop");
        suspicion.strays = strays;
      }
    } catch {
      // A runtime that does not answer is no longer offered, and its work is over when it is back.
      if (clock.now() >= suspicion.worriesAtMs) this.#suspicions.delete(runtime);
    }
  }
}
