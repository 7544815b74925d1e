import { faultEntry, Fault } from "#shared/fault/fault.ts";
import type { LoadNews, RejectPayload } from "#shared/protocol/frame-payload.ts";
import type { MachineLoad } from "#shared/protocol/presence.ts";
import type { ModelDemand } from "../models/model-facts.ts";
import type { ServedModel } from "../models/model-set.ts";
import { ModelReconciler, type ReconcilerOptions } from "../models/reconcile-models.ts";
import type { RuntimeWork } from "../models/watch-source.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { Job, Outcome } from "./job.ts";
import { manageModels, listModels } from "./manage-models.ts";
import { runJob } from "./run-job.ts";
import { LearntSlots, Schedule } from "./schedule.ts";
import { StrayWatch } from "./watch-strays.ts";

export interface RunnerOptions extends Omit<ReconcilerOptions, "jobs"> {
  readonly queueMax: number;
}

/**
 * Queues jobs, runs them on their runtimes and ends them. Jobs wait in lanes. Each lane has as many slots as its runtime
 * takes jobs, as far as that is known.
 */
export class JobRunner {
  readonly #options: RunnerOptions;
  readonly #schedule: Schedule<Job>;
  /** The jobs that take no slot. */
  readonly #beside = new Set<Job>();
  readonly #learnt = new LearntSlots();
  readonly #strays: StrayWatch;
  /** Brings models into memory, where the owner lets the agent do that. */
  readonly models: ModelReconciler;

  constructor(options: RunnerOptions) {
    this.#options = options;
    const { runtime } = options;
    this.#schedule = new Schedule(options);
    const ownRunning = (on: Runtime): number => {
      const proofs = runtime.seams.at === on ? 1 : 0;
      return this.#runningOn(on).reduce((sum, { width }) => sum + width, proofs);
    };
    this.#strays = new StrayWatch({ ...options, ownRunning });
    runtime.heed(this);
    runtime.onChange(() => this.#resize());
    this.models = new ModelReconciler({ ...options, jobs: this });
  }

  get load(): MachineLoad {
    const { runtime, queueMax } = this.#options;
    const { slots = 0, runtimes = [] } = runtime.offer ?? {};
    const memory = this.models.facts;
    return {
      slots,
      ...(runtimes.some(({ guessesSlots }) => guessesSlots) && { guessesSlots: true as const }),
      running: this.#schedule.running.size,
      queued: this.#schedule.waiting.size,
      queueMax,
      strays: this.#strays.strays,
      ...(memory && { memory }),
    };
  }

  /** The model that is being loaded for jobs that wait for it. */
  get loading(): LoadNews | undefined {
    return this.#options.decidesLoads ? this.models.news : undefined;
  }

  /** Returns the positions of all waiting jobs, each counted from 1 in its own lane. */
  positions(): ReadonlyMap<Job, number> {
    return this.#schedule.positions();
  }

  /** Queues a job that a model answers, and starts the jobs whose turn it is. Returns why the job is refused, if it is. */
  submit(job: Job, served: ServedModel): RejectPayload | undefined {
    const { runtime, queueMax } = this.#options;
    const { lane, model } = served;
    if (runtime.seams.at !== undefined) void runtime.seams.interrupt();
    this.#start(this.#schedule.resize(lane, this.#slotsOf(served)));
    const turn = { lane, sender: job.head.keyId ?? "", ready: this.#isReady(job) };
    const started = this.#schedule.submit(job, turn);
    const { asked } = runtime.facts;
    asked.set(model.id, (asked.get(model.id) ?? 0) + 1);
    this.#start(started ?? []);
    if (started !== undefined) return undefined;
    return { reason: "busy", message: `The machine's queue of ${queueMax} requests is full (queueMax).` };
  }

  /** Goes on with a job whose body has come whole. */
  bodyCame(job: Job): void {
    if (!job.takesSlot) return void this.runBeside(job);
    this.#start(this.#schedule.setReady(job, this.#isReady(job)));
    this.look();
  }

  /** Runs a job of a kind that takes no slot, and so waits for nothing. */
  async runBeside(job: Job): Promise<void> {
    const { runtime, manage: allowed, clock } = this.#options;
    const { head, served } = job;
    this.#beside.add(job);
    if (head.kind === "manage") {
      job.begin("loading");
      await runtime.seams.interrupt();
      this.#end(job, await manageModels(job, { offer: runtime.offer, allowed, pulls: this.models.pulls, clock }));
    } else if (head.kind === "count" && served !== undefined) {
      job.begin("prefill");
      job.width = 0;
      this.#end(job, await runJob(job, served, clock));
    } else this.#end(job, await listModels(job, runtime));
  }

  /** Ends a job in any state. A running job is aborted and reports its own outcome; a waiting job ends here. */
  stop(job: Job, fault: Fault): void {
    job.abort(fault);
    if (job.startedAtMs === undefined) this.#end(job, { outcome: "fault", fault });
  }

  /** Follows the runtimes, which come and go. The caller calls it once per beat. */
  tick(): void {
    this.#resize();
    this.#strays.tick();
    this.look();
  }

  /** Begins the jobs whose models have come into memory, and ends those whose models could not be loaded. */
  look(): void {
    const { models } = this;
    if (!this.#options.decidesLoads) return;
    for (const job of this.#schedule.waiting.keys()) {
      if (!job.isWaiting) continue;
      const { model = "" } = job.head;
      const isReady = models.isReady(model);
      const refusal = isReady ? undefined : models.refusalOf(model, job.acceptedAtMs);
      if (refusal !== undefined) {
        this.stop(job, refusal);
        continue;
      }
      if (!isReady) job.awaitLoad(models.news?.model === model);
      this.#start(this.#schedule.setReady(job, isReady));
    }
    models.look();
  }

  #isReady({ state, head }: Job): boolean {
    return state !== "receiving" && (!this.#options.decidesLoads || this.models.isReady(head.model ?? ""));
  }

  /** Returns the jobs for each model: those that run, and those that wait for a slot or for their model. */
  demand(): ReadonlyMap<string, ModelDemand> {
    const demand = new Map<string, ModelDemand>();
    const jobs = [...this.#runningOn(), ...this.#schedule.waiting.keys()];
    for (const { head, isWaiting, isRunning, acceptedAtMs } of jobs) {
      const { model = "" } = head;
      const so = demand.get(model) ?? { running: 0, waiting: 0, waitingSinceMs: undefined };
      if (isRunning) demand.set(model, { ...so, running: so.running + 1 });
      if (!isWaiting) continue;
      const waitingSinceMs = Math.min(acceptedAtMs, so.waitingSinceMs ?? Infinity);
      demand.set(model, { ...so, waiting: so.waiting + 1, waitingSinceMs });
    }
    return demand;
  }

  #start(jobs: readonly Job[]): void {
    for (const job of jobs) void this.#run(job);
  }

  async #run(job: Job): Promise<void> {
    // The runtime may have come and gone while the job was queued.
    const served = this.#options.runtime.offer?.byId.get(job.head.model ?? "");
    job.begin("prefill", served);
    if (served === undefined) {
      const message = "The model server on the GPU machine does not answer.";
      return this.#end(job, { outcome: "fault", fault: new Fault("runtime_offline", { message }) });
    }
    const outcome = await runJob(job, served, this.#options.clock);
    if (wasTooMuch(job, outcome) && this.#mayWait(served)) {
      job.putBack();
      this.#start(this.#schedule.putBack(job));
      return;
    }
    this.#end(job, outcome);
    if (job.signal.aborted) this.#strays.cancelled(served.runtime, job.width);
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
    const { waiting, running } = this.#schedule;
    const lanes = new Map([...waiting.keys(), ...running.keys()].map(({ served }) => [served?.lane, served]));
    for (const served of lanes.values())
      if (served !== undefined) this.#start(this.#schedule.resize(served.lane, this.#slotsOf(served)));
  }

  #slotsOf({ lane, runtime }: ServedModel): number {
    return this.#learnt.limit(lane, runtime.slots, this.#options.clock.now());
  }

  /**
   * Ends a job, frees its slot and logs how it ended: a failing machine is the operator's matter, an invalid request is not.
   * The gateway's log has a line with the job's id that names the request.
   */
  #end(job: Job, outcome: Outcome): void {
    if (job.state === "ended") return;
    job.end(outcome);
    this.#log(job, outcome);
    this.#beside.delete(job);
    this.#start(this.#schedule.remove(job));
    if (this.#options.decidesLoads) this.models.look();
  }

  #log({ head, waiting }: Job, outcome: Outcome): void {
    const { log } = this.#options;
    const ties = { job: head.id, key: head.keyId, model: head.model, gateway: waiting };
    if (outcome.outcome === "end") return log.debug(ties, "job done");
    const { code, reason: internal } = outcome.fault;
    const fields = { ...ties, code, internal };
    if (code === "cancelled") log.debug(fields, "job cancelled");
    else if (faultEntry(code).status < 500) log.info(fields, "job refused");
    else log.warn(fields, "job failed");
  }

  /** True if no job is under way, and no model is being loaded for one. */
  isIdle(): boolean {
    const { waiting, running } = this.#schedule;
    return this.models.news === undefined && waiting.size + running.size + this.#beside.size === 0;
  }

  /** Returns what jobs show of a runtime. */
  workOn(runtime: Runtime): RuntimeWork {
    const jobs = this.#runningOn(runtime);
    const heardAtMs = jobs.map((job) => (job.firstTokenAtMs === undefined ? -Infinity : job.progressAtMs));
    return { running: jobs.length > 0, heardAtMs: Math.max(-Infinity, ...heardAtMs) };
  }

  /** Returns the running jobs that a model answers, on all runtimes or on one. */
  #runningOn(runtime?: Runtime): Job[] {
    const begun = [...this.#schedule.running.keys(), ...this.#beside];
    return begun.filter(
      ({ served, isRunning }) => isRunning && served && served.runtime === (runtime ?? served.runtime),
    );
  }
}

/** True if a runtime refused a job before its first token because the runtime is busy with other work. */
function wasTooMuch(job: Job, outcome: Outcome): boolean {
  const isRefused = outcome.outcome === "fault" && outcome.fault.code === "server_is_overloaded";
  return isRefused && job.firstTokenAtMs === undefined && !job.signal.aborted;
}
