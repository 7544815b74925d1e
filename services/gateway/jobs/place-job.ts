import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { EndPayload, Resumable } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Breakers } from "../routing/breakers.ts";
import { contradictionsMax } from "../routing/busy-claims.ts";
import type { Chosen } from "../routing/choose-machine.ts";
import { DeadlyRequests, moves, RetryBudget } from "./bound-failover.ts";
import { isSame } from "./continue-answer.ts";
import type { AnswerCourse } from "./answer-course.ts";
import type { JobOutcome } from "./job-events.ts";
import { OfferedJob } from "./offered-job.ts";
import type { JobPlacements, ModelTarget } from "../routing/job-placements.ts";
import { machineDisconnected, machineOffline } from "./machine-fault.ts";
import { nextStep } from "./next-step.ts";
import { cutOff, type OpenJobs } from "./open-jobs.ts";
import {
  anyOf,
  type Failure,
  type RankedTarget,
  type Targeted,
  TargetRanking,
  targetsOf,
  type Unfinished,
} from "./rank-targets.ts";
import { type MachineRanking, modelNotFound, type Wanted } from "../routing/rank-machines.ts";

interface PlacerOptions {
  readonly ranking: MachineRanking;
  readonly breakers: Breakers;
  readonly placements: Pick<JobPlacements, "placed" | "took" | "saidBusy" | "retryAfterSeconds">;
  readonly jobs: OpenJobs;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: PlacementMeter;
}

/** Counts failovers, empty retry budgets and opened breakers. */
export interface PlacementMeter {
  failedOver(machine: string, code: FaultCode): void;
  retryBudgetEmpty(): void;
  breakerOpened(machine: string): void;
}

/** A request that needs a machine. It names its first target, and in `fallbacks` those that are tried after it, in order. */
export interface Placement extends Wanted {
  /** The model as the client named it. Undefined if no route led to the targets. */
  readonly routed?: string | undefined;
  readonly fallbacks?: readonly ModelTarget[] | undefined;
  /** True if the client gets the answer in one piece. */
  readonly whole: boolean;
  readonly keyId: string;
  /** Set if the client can resume its answer. */
  readonly resumable?: Resumable | undefined;
  /** Called when a machine has taken a resumable job. */
  readonly onPlaced?: ((place: { readonly machine: string; readonly job: string }) => void) | undefined;
  /** The key's own salt for the caches of runtimes; undefined where keys share them. */
  readonly cacheSalt?: string | undefined;
  /** True if the machine is to tell which stop string ended the answer. */
  readonly tellsStop?: boolean | undefined;
  /** Released as soon as a part of the answer was passed on: bodies are large, and answers take long. */
  body: Uint8Array;
  /** SHA-256 of a body that is sent in parts. */
  readonly sha256: string | undefined;
  readonly traceparent: string | undefined;
  /** Id of the request in the log. */
  readonly requestId: string;
  readonly listener: AnswerCourse;
  /** Throws the fault of a request whose key may not cause this load. Asked again, it charges nothing more. */
  readonly assertMayLoad: (load: { readonly model: string; readonly isPlaced: boolean }) => Promise<void>;
}

const taken = new Uint8Array();

/** Limits the machines that one round offers a job to. */
const offersMax = 8;
/** The machines next in the ranking that the record of a request names. */
const nextTold = 3;
/** Faults that another machine may avoid. A runtime timeout is not among them: it would take as long again. */
const retryableCodes: ReadonlySet<FaultCode> = new Set([
  "agent_disconnected",
  "agent_offline",
  "internal_error",
  "model_not_found",
  "runtime_offline",
  "server_is_overloaded",
  "shutting_down",
  "upstream_error",
]);

/** Faults of an answer that another machine may go on with, besides those. */
const continuedAfter: ReadonlySet<FaultCode> = new Set([...retryableCodes, "stream_gap"]);

/** A machine with one of these has no slot for an answer that another one could finish. */
const occupied: ReadonlySet<Chosen["reason"]> = new Set(["busy", "full"] as const);

/** Faults that a request may owe to the broker between its gateway and its machine. */
const absences: ReadonlySet<FaultCode> = new Set(["agent_disconnected", "agent_offline"]);

/** Faults of requests whose keys may not cause a load. A machine with the model in memory still takes them. */
const loadLimits: ReadonlySet<FaultCode> = new Set(["rate_limit_loads", "loads_not_allowed"]);

/**
 * Finds a machine for a request and follows its job to the end, or throws the fault of the request. A job that fails
 * before any part of its answer was passed on is placed on another machine. The client then loses only time.
 */
export class JobPlacer {
  readonly #options: PlacerOptions;
  readonly #budget: RetryBudget;
  readonly #moves: RetryBudget;
  readonly #deadly: DeadlyRequests;
  readonly #targets: TargetRanking;

  constructor(options: PlacerOptions) {
    this.#options = options;
    this.#budget = new RetryBudget(options.clock);
    this.#moves = new RetryBudget(options.clock, moves);
    this.#deadly = new DeadlyRequests(options.timing);
    this.#targets = new TargetRanking(options.ranking);
  }

  async run(placement: Placement): Promise<EndPayload> {
    const { jobs, clock, timing } = this.#options;
    jobs.assertConnection();
    this.#deadly.refuse(placement, clock.now());
    this.#budget.asked();
    this.#moves.asked();
    const sinceMs = clock.now();
    try {
      return await this.#runOnTargets(placement, sinceMs + timing.jobTotalMs);
    } catch (thrown) {
      throw await this.#forClient(Fault.from(thrown), placement, sinceMs);
    }
  }

  /**
   * Throws the fault of a request that no machine can take now. Called before the limits of the request's key are
   * checked.
   */
  async assertTaker(wanted: Targeted & Pick<Placement, "routed">): Promise<void> {
    const { jobs, ranking, clock } = this.#options;
    jobs.assertConnection();
    const targets = targetsOf(wanted);
    if (targets.some((target) => ranking.hasTaker(target))) return;
    const sinceMs = clock.now();
    try {
      await anyOf(targets.map((target) => ranking.rank(target)));
    } catch (thrown) {
      throw await this.#forClient(Fault.from(thrown), wanted, sinceMs);
    }
  }

  /**
   * Runs a request on one machine after the other, as `nextStep` decides. Once a part of an answer was passed on, only a
   * machine that can go on with it is asked.
   */
  async #runOnTargets(placement: Placement, deadlineMs: number): Promise<EndPayload> {
    const { ranking } = this.#options;
    const targets = targetsOf(placement);
    let at = await this.#targets.rankFirst(targets);
    let failure: Fault | undefined;
    for (;;) {
      const outcome = await this.#offerInTurn(placement, at, deadlineMs);
      if (outcome.end !== undefined) return outcome.end;
      if (outcome.by !== undefined) at = { ...at, failures: [...at.failures, outcome as Failure] };
      if (placement.listener.hasSaid()) {
        at = this.#goOn(placement, at, outcome);
        continue;
      }
      const { wanted, place, rounds, failures } = at;
      const others = outcome.by && ranking.others(wanted, new Set(failures.map(({ by }) => by.machine)));
      const isLastTarget = place === targets.length - 1;
      const facts = {
        code: outcome.fault.code,
        failures: failures.length,
        others: others?.length,
        rounds,
        isLastTarget,
      };
      const step = nextStep(facts);
      if (step === "another machine" && others !== undefined && this.#hasBudget()) {
        this.#tellStep(placement, outcome, { model: outcome.by?.model.id }, "a job goes to another machine");
        at = { ...at, ranked: others };
      } else if (step === "rank again") {
        const ranked = await ranking.rank(wanted).catch((thrown: unknown) => {
          throw placement.signal.aborted ? thrown : (failure ?? thrown);
        });
        at = { ...at, ranked, rounds: rounds + 1 };
      } else {
        // The fault of a machine that worked on the request says more than that nobody took it.
        const last: Unfinished = failures.at(-1) ?? outcome;
        if (last.by !== undefined || failure === undefined) failure = last.fault;
        const next = await this.#targets.rankNext(targets, { after: place, waits: last.by === undefined });
        if (next === undefined || (last.by !== undefined && !this.#moves.take())) throw failure;
        const fields = { route: placement.routed, model: next.wanted.modelId };
        this.#tellStep(placement, last, fields, "a job goes to the next target of its route");
        at = next;
      }
    }
  }

  /**
   * Returns the machines that go on with an answer that broke off, or throws its fault. A continuation that no machine took
   * ends in the fault of the machine before.
   */
  #goOn(placement: Placement, at: RankedTarget, { by, fault }: Unfinished): RankedTarget {
    const { outputTokens: tokens } = placement.listener;
    const elsewhere = by && this.#elsewhere(placement, at, by);
    if (elsewhere === undefined || !this.#moves.take()) throw at.failures.at(-1)?.fault ?? fault;
    this.#tellStep(placement, { fault, by }, { model: by?.model.id, tokens }, "another machine goes on with an answer");
    return { ...at, ...elsewhere };
  }

  /**
   * Returns the machines that could go on with the answer that the client has a part of, undefined if there is none. Those
   * that failed under this request are not asked again; one that was drained may be back.
   */
  #elsewhere({ listener }: Placement, { wanted, failures }: RankedTarget, from: Chosen) {
    if (listener.delivered?.body === undefined) return undefined;
    const failed = failures.filter(({ fault }) => fault.code !== "shutting_down").map(({ by }) => by.machine);
    const others = this.#options.ranking.others(wanted, new Set([from.machine, ...failed]));
    const same = others.filter(({ model }) => isSame(model, from.model));
    const continuation = same.length === 0 ? undefined : listener.delivered.continuation(listener.outputTokens);
    if (continuation === undefined) return undefined;
    const ranked = same.filter(({ model }) => model.continues?.includes(continuation.seam));
    return ranked.length === 0 ? undefined : { ranked, continuation };
  }

  #tellStep(placement: Placement, { fault, by }: Unfinished, fields: object, message: string): void {
    const { log, meter } = this.#options;
    const { requestId: request, keyId: key } = placement;
    log.info({ request, key, ...fields, machine: by?.machine, code: fault.code, internal: fault.reason }, message);
    if (by !== undefined) meter?.failedOver(by.machine, fault.code);
  }

  /**
   * Returns the fault as its client is told. A broker that was away has one code for each request that has no part of its
   * answer, and another for each that has one. A model that does not exist is named as the client named it.
   */
  async #forClient(fault: Fault, { routed, listener }: Asked, sinceMs: number): Promise<Fault> {
    const { code, reason = code } = fault;
    if (code === "model_not_found" && routed !== undefined) return modelNotFound(routed);
    if (listener?.hasSaid()) return code === "backend_unavailable" ? machineDisconnected(reason) : fault;
    const isBrokers = absences.has(code) && !(await this.#options.jobs.brokerAnsweredSince(sinceMs));
    return isBrokers ? cutOff(reason) : fault;
  }

  /** True if another machine may do better. Throws `poison_request` if the request is too dangerous for any machine. */
  #isRetryable(placement: Placement, { code }: Fault, codes: ReadonlySet<FaultCode>): boolean {
    // A client that left asks again for what its machine has lost.
    const hasLeft = placement.signal.aborted || placement.listener.hasLeft();
    if (hasLeft || this.#options.jobs.isStopping || !codes.has(code)) return false;
    this.#deadly.refuse(placement, this.#options.clock.now());
    return true;
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
  #blame(placement: Placement, fault: Fault, by: Chosen): void {
    const { breakers, jobs, clock, log, meter } = this.#options;
    // Machines drop the jobs of a gateway that stood still or was cut off. That is no failure of the machine.
    const wasAway = fault.died === "machine" && jobs.wasAway;
    if (placement.signal.aborted || wasAway) return;
    const nowMs = clock.now();
    const { machine, model } = by;
    const { code, told, reason = told } = fault;
    if (told !== undefined)
      log.debug({ request: placement.requestId, machine, code, told }, "a machine said why it failed");
    if (breakers.failed(machine, model.id, { code, nowMs, reason })) {
      meter?.breakerOpened(machine);
      log.warn({ machine, model: model.id }, "this model fails all the time on this machine, which is asked last");
    }
    if (placement.body === taken || fault.died === undefined) return;
    // Lost machines of one target count as one: a request by a route may still move to the next target.
    const isOneOfTarget = fault.died === "machine" && placement.routed !== undefined;
    this.#deadly.died(fault.died, isOneOfTarget ? `the machines of ${model.id}` : machine, placement, nowMs);
  }

  /**
   * Offers a job to one machine after the other until one takes it, and follows it there. Throws a fault that no other
   * machine can avoid.
   */
  async #offerInTurn(
    placement: Placement,
    at: RankedTarget,
    deadlineMs: number,
  ): Promise<Unfinished | { readonly end: EndPayload }> {
    const { breakers, clock } = this.#options;
    const { ranked } = at;
    const offers = ranked.slice(0, offersMax);
    let refusal: Fault | undefined;
    for (const [place, by] of offers.entries()) {
      const barred = by.causes && (await barredFrom(by.model.id, by.causes, placement));
      if (barred !== undefined) {
        refusal ??= barred;
        continue;
      }
      const nowMs = clock.now();
      const remainingMs = Math.max(0, deadlineMs - nowMs);
      breakers.placed(by.machine, by.model.id, nowMs);
      const isLast = by === offers.at(-1);
      let outcome: JobOutcome;
      try {
        const next = ranked.slice(place + 1, place + 1 + nextTold);
        outcome = await this.#offer({ placement, at, chosen: by, next, isLast, remainingMs });
      } catch (thrown) {
        if (placement.signal.aborted) throw thrown;
        return { fault: Fault.from(thrown) };
      }
      if (outcome.kind === "end") {
        breakers.worked(by.machine, by.model.id);
        this.#deadly.worked(placement);
        return outcome;
      }
      const { fault, taken: wasTaken } = outcome;
      if (wasTaken) {
        const { listener } = placement;
        const hasSaid = listener.hasSaid();
        // The body was released with the first part of the answer, unless the answer may go on elsewhere.
        if (hasSaid) placement.body = listener.delivered?.body ?? taken;
        this.#blame(placement, fault, by);
        if (!this.#isRetryable(placement, fault, hasSaid ? continuedAfter : retryableCodes)) throw fault;
        if (hasSaid && placement.body === taken) throw fault;
        return { fault, by };
      }
      if (fault.code === "server_is_overloaded") this.#noteBusy(by);
      if (refusal === undefined || loadLimits.has(refusal.code) || fault.code === "server_is_overloaded")
        refusal = fault;
    }
    return { fault: this.#withRetryAfter(refusal ?? machineOffline(), at.wanted) };
  }

  /** Counts a busy that contradicts the machine's own presence. */
  #noteBusy(by: Chosen): void {
    const { placements, log } = this.#options;
    if (!placements.saidBusy(by)) return;
    const { machine, model } = by;
    log.warn(
      { machine, model: model.id, contradictionsMax },
      "a machine said busy again and again though its presence told a free slot; it is asked last",
    );
  }

  /** Adds the expected retry time to a fault that says that all machines are full. */
  #withRetryAfter(refusal: Fault, wanted: Wanted): Fault {
    if (refusal.code !== "server_is_overloaded") return refusal;
    return refusal.with({ retryAfterSeconds: this.#options.placements.retryAfterSeconds(wanted) });
  }

  #offer({ placement, at, chosen, next, isLast, remainingMs }: Offer): Promise<JobOutcome> {
    const { timing, jobs, placements } = this.#options;
    const { wanted, continuation } = at;
    const { kind, keyId, cacheSalt, tellsStop, whole, traceparent, listener, signal } = placement;
    // A machine that goes on with an answer has a part of it only.
    const resumable = continuation === undefined ? placement.resumable : undefined;
    const id = newToken();
    const model = chosen.model.id;
    listener.onOffer({ job: id, chosen, next });
    const body = continuation?.body ?? placement.body;
    const owner = new OfferedJob({
      answer: listener,
      placed: placements.placed(chosen, wanted, placement),
      inParts: body.byteLength > limits.partBytes,
      taken: () => placements.took(chosen),
      given() {
        if (resumable !== undefined) placement.onPlaced?.({ machine: chosen.machine, job: id });
      },
      said() {
        listener.delivered?.keep(placement.body);
        placement.body = taken;
      },
      mayGoOn: () => {
        const [first] = this.#elsewhere(placement, at, chosen)?.ranked ?? [];
        return first !== undefined && !occupied.has(first.reason);
      },
    });
    return jobs.run({
      target: chosen,
      head: { id, kind, model, keyId, cacheSalt, resumable, tellsStop, whole, remainingMs, traceparent },
      body,
      sha256: continuation === undefined ? placement.sha256 : undefined,
      ...(!isLast && { acceptWithinMs: timing.acceptWaitMs * 2 }),
      owner,
      signal,
    });
  }
}

/** Returns why a request may not go to a machine: its model would have to be loaded there, and its key may not cause that. */
function barredFrom(
  model: string,
  causes: NonNullable<Chosen["causes"]>,
  { assertMayLoad }: Pick<Placement, "assertMayLoad">,
): Promise<Fault | undefined> {
  return assertMayLoad({ model, ...causes }).then(
    () => undefined,
    (thrown: unknown) => Fault.from(thrown),
  );
}

interface Offer {
  readonly placement: Placement;
  readonly at: RankedTarget;
  readonly chosen: Chosen;
  /** The machines that come next in the ranking. */
  readonly next: readonly Chosen[];
  /** No other machine is asked after this one, so it has more time to answer. */
  readonly isLast: boolean;
  readonly remainingMs: number;
}

type Asked = Pick<Placement, "routed"> & Partial<Pick<Placement, "listener">>;
