import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type Breakers, contradictionsMax } from "../routing/breakers.ts";
import type { Chosen } from "../routing/choose-machine.ts";
import { isSame } from "../jobs/continue-answer.ts";
import type { PlacementMeter } from "../jobs/job-events.ts";
import type { JobPlacements } from "../routing/job-placements.ts";
import { machineDisconnected } from "../jobs/machine-fault.ts";
import { cutOff } from "../jobs/broker-line.ts";
import type { OpenJobs } from "../jobs/open-jobs.ts";
import { type MachineRanking, modelNotFound, type Wanted } from "../routing/rank-machines.ts";
import { afterFault, isAvoidable } from "./after-fault.ts";
import { DeadlyRequests, moves, RetryBudget } from "./bound-failover.ts";
import { rankAwaited, type RankedTarget, rankNext, rankNow, type Unfinished } from "./choose.ts";
import type { RefusedEfforts } from "./refused-efforts.ts";
import type { ModelRequest } from "./request.ts";

export interface NextMachineOptions {
  readonly ranking: MachineRanking;
  readonly breakers: Breakers;
  readonly placements: Pick<
    JobPlacements,
    "canPlace" | "placed" | "rankNow" | "retryAfterSeconds" | "saidBusy" | "took"
  >;
  readonly refusedEfforts: RefusedEfforts;
  readonly jobs: OpenJobs;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: PlacementMeter | undefined;
}

/** A request on its way from machine to machine. */
export interface JobRun {
  readonly request: ModelRequest;
  readonly targets: readonly Wanted[];
  /** Ends the job; the reason must be a Fault. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
}

/** A machine with one of these has no slot for an answer that another one could finish. */
const occupied: ReadonlySet<Chosen["reason"]> = new Set(["busy", "full"] as const);

/** Faults that a request may owe to the broker between its gateway and its machine. */
const absences: ReadonlySet<FaultCode> = new Set(["agent_disconnected", "agent_offline"]);

/** Faults of requests whose keys may not cause a load. A machine with the model in memory still takes them. */
const loadLimits: ReadonlySet<FaultCode> = new Set(["rate_limit_loads", "loads_not_allowed"]);

/** Finds the way of a request that no machine has completed: to the next machine, or to the fault that its client is told. */
export class NextMachine {
  /** The requests so far, as their runner counts them. */
  readonly requests = { count: 0 };
  readonly deadly: DeadlyRequests;
  readonly #options: NextMachineOptions;
  readonly #budget: RetryBudget;
  readonly #moves: RetryBudget;

  constructor(options: NextMachineOptions) {
    const { clock, timing } = options;
    this.#options = options;
    this.#budget = new RetryBudget(clock, this.requests);
    this.#moves = new RetryBudget(clock, this.requests, moves);
    this.deadly = new DeadlyRequests(timing);
  }

  /** Returns the machines to ask next, as `afterFault` decides, or throws the fault in which the request ends. */
  async after(run: JobRun, at: RankedTarget, { fault, by }: Unfinished): Promise<RankedTarget> {
    const { ranking, placements, clock, refusedEfforts } = this.#options;
    const { request } = run;
    const { work, answer } = request;
    const failures = by === undefined ? at.failures : [...at.failures, { fault, by }];
    const here = { ...at, failures };
    const last = failures.at(-1)?.fault ?? fault;
    const hasSaid = answer.hasSaid();
    const tried = new Set(failures.map((failed) => failed.by.machine));
    const others = by === undefined || hasSaid ? [] : (placements.rankNow(at.wanted, tried) ?? []);
    const elsewhere = by && hasSaid ? this.#elsewhere(run, here, by) : undefined;
    const facts = {
      code: fault.code,
      taken: by !== undefined,
      hasSaid,
      isLeaving: run.signal.aborted || answer.hasLeft() || this.#options.jobs.isStopping,
      lacksEffort: work.effort !== undefined && fault.param === "reasoning_effort",
      canGoOn: elsewhere !== undefined,
      failures: failures.length,
      others: others.length,
      rounds: at.rounds,
      isLastTarget: at.index === run.targets.length - 1,
    };
    const step = afterFault(facts);
    if (by !== undefined && !facts.isLeaving && isAvoidable(facts)) this.deadly.refuse(request, clock.now());
    if (step === "end") throw last;
    if (step === "without effort") {
      refusedEfforts.note(work);
      request.work.leaveEffort();
      return rankNow(this.#options, run.targets) ?? rankAwaited(this.#options, run.targets);
    }
    if (step === "go on elsewhere") {
      if (elsewhere === undefined || !this.#moves.take()) throw last;
      const fields = { model: by?.model.id, tokens: answer.outputTokens };
      this.#tellStep(request, { fault, by }, fields, "another machine goes on with an answer");
      return { ...here, ...elsewhere };
    }
    if (step === "another machine" && this.#hasBudget()) {
      this.#tellStep(request, { fault, by }, { model: by?.model.id }, "a job goes to another machine");
      return { ...here, ranked: others };
    }
    if (step !== "rank again") return this.#nextTarget(run, here, { fault, by });
    const ranked = await ranking.rank(at.wanted).catch((thrown: unknown) => {
      throw run.signal.aborted ? thrown : (at.worst ?? thrown);
    });
    return { ...here, ranked, rounds: at.rounds + 1 };
  }

  /** Returns the machines of the next target, or throws the fault that says most. */
  async #nextTarget(run: JobRun, at: RankedTarget, unfinished: Unfinished): Promise<RankedTarget> {
    const { request, targets } = run;
    const last: Unfinished = at.failures.at(-1) ?? unfinished;
    // The fault of a machine that worked on the request says more than that nobody took it.
    const worst = last.by !== undefined || at.worst === undefined ? last.fault : at.worst;
    const next = await rankNext(this.#options, targets, { after: at.index, waits: last.by === undefined });
    if (next === undefined || (last.by !== undefined && !this.#moves.take())) throw worst;
    const fields = { route: request.asked?.routed, model: next.wanted.modelId };
    this.#tellStep(request, last, fields, "a job goes to the next target of its route");
    return { ...next, worst };
  }

  /** True if another machine has a slot now to go on with the answer. */
  mayGoOn(run: JobRun, at: RankedTarget, from: Chosen): boolean {
    const [first] = this.#elsewhere(run, at, from)?.ranked ?? [];
    return first !== undefined && !occupied.has(first.reason);
  }

  /**
   * Returns the machines that could go on with the answer that the client has a part of, undefined if there is none. Those
   * that failed under this request are not asked again; one that was drained may be back.
   */
  #elsewhere({ request }: JobRun, { wanted, failures }: RankedTarget, from: Chosen) {
    const { delivered, outputTokens } = request.answer;
    if (delivered?.body === undefined) return undefined;
    const failed = failures.filter(({ fault }) => fault.code !== "shutting_down").map(({ by }) => by.machine);
    const others = this.#options.placements.rankNow(wanted, new Set([from.machine, ...failed])) ?? [];
    const same = others.filter(({ model }) => isSame(model, from.model));
    const continuation = same.length === 0 ? undefined : delivered.continuation(outputTokens);
    if (continuation === undefined) return undefined;
    const ranked = same.filter(({ model }) => model.continues?.includes(continuation.seam));
    return ranked.length === 0 ? undefined : { ranked, continuation };
  }

  #tellStep(
    { id: request, key: { id: key } }: ModelRequest,
    { fault, by }: Unfinished,
    fields: object,
    message: string,
  ) {
    const { log, meter } = this.#options;
    log.info({ request, key, ...fields, machine: by?.machine, code: fault.code, internal: fault.reason }, message);
    if (by !== undefined) meter?.failedOver(by.machine, fault.code);
  }

  /**
   * Returns the fault as its client is told. A broker that was away has one code for each request that has no part of its
   * answer, and another for each that has one. A model that does not exist is named as the client named it.
   */
  async forClient(fault: Fault, { asked, answer }: ModelRequest, sinceMs: number): Promise<Fault> {
    const { code, reason = code } = fault;
    if (code === "model_not_found" && asked?.routed !== undefined) return modelNotFound(asked.routed);
    if (answer.hasSaid()) return code === "backend_unavailable" ? machineDisconnected(reason) : fault;
    const isBrokers = absences.has(code) && !(await this.#options.jobs.line.answeredSince(sinceMs));
    return isBrokers ? cutOff(reason) : fault;
  }

  #hasBudget(): boolean {
    const hasIt = this.#budget.take();
    if (!hasIt) this.#options.meter?.retryBudgetEmpty();
    return hasIt;
  }

  /**
   * Counts a fault against its machine if it is the machine's own. Counts a death of a runtime or a machine against the
   * request.
   */
  blame({ request, signal }: JobRun, fault: Fault, { machine, model }: Chosen): void {
    const { breakers, jobs, clock, log, meter } = this.#options;
    // Machines drop the jobs of a gateway that stood still or was cut off. That is no failure of the machine.
    const wasAway = fault.died === "machine" && jobs.line.wasAway;
    if (signal.aborted || wasAway) return;
    const nowMs = clock.now();
    const { code, told, reason = told } = fault;
    if (told !== undefined) log.debug({ request: request.id, machine, code, told }, "a machine said why it failed");
    if (breakers.failed(machine, model.id, { code, nowMs, reason })) {
      meter?.breakerOpened(machine);
      log.warn({ machine, model: model.id }, "this model fails all the time on this machine, which is asked last");
    }
    if (fault.died === undefined) return;
    // Lost machines of one target count as one: a request by a route may still move to the next target.
    const isOneOfTarget = fault.died === "machine" && request.asked?.routed !== undefined;
    this.deadly.died(fault.died, isOneOfTarget ? `the machines of ${model.id}` : machine, request, nowMs);
  }

  /**
   * Returns which of two refusals says more: that of the machine that refused now, or the first one before. A machine that
   * said busy although its presence told a free slot is noted.
   */
  refusedBy(by: Chosen, fault: Fault, before: Fault | undefined): Fault {
    const isBusy = fault.code === "server_is_overloaded";
    if (isBusy && this.#options.placements.saidBusy(by)) {
      const { machine, model } = by;
      this.#options.log.warn(
        { machine, model: model.id, contradictionsMax },
        "a machine said busy again and again though its presence told a free slot; it is asked last",
      );
    }
    return before === undefined || loadLimits.has(before.code) || isBusy ? fault : before;
  }

  /** Adds the expected retry time to a fault that says that all machines are full. */
  withRetryAfter(refusal: Fault, wanted: Wanted): Fault {
    if (refusal.code !== "server_is_overloaded") return refusal;
    return refusal.with({ retryAfterSeconds: this.#options.placements.retryAfterSeconds(wanted) });
  }
}

/** Returns why a request may not go to a machine: its model would have to be loaded there, and its key may not cause that. */
export function barredFrom(request: ModelRequest, { model, causes }: Chosen): Promise<Fault | undefined> {
  if (causes === undefined) return Promise.resolve(undefined);
  return request.assertMayLoad({ model: model.id, ...causes }).then(
    () => undefined,
    (thrown: unknown) => Fault.from(thrown),
  );
}
