import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Breakers } from "../fleet/breakers.ts";
import { contradictionsMax } from "../fleet/busy-claims.ts";
import type { Chosen } from "../fleet/choose-machine.ts";
import { DeadlyRequests } from "./deadly-requests.ts";
import type { JobListener, JobOutcome } from "./job-listener.ts";
import type { JobRoutes } from "../fleet/job-routes.ts";
import { machineOffline } from "./machine-fault.ts";
import type { PlacedJob } from "./open-job.ts";
import type { OpenJobs } from "./open-jobs.ts";
import type { PendingJob } from "../fleet/pending-jobs.ts";
import type { MachineRanking, Wanted } from "../fleet/rank-machines.ts";
import { type AnswerRenderer, RenderedAnswer } from "./render-answer.ts";
import { RetryBudget } from "./retry-budget.ts";

interface PlacerOptions {
  readonly ranking: MachineRanking;
  readonly breakers: Breakers;
  readonly routes: Pick<JobRoutes, "placed" | "took" | "saidBusy" | "answered" | "retryAfterSeconds">;
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

/** A request that needs a machine. */
export interface Placement extends Wanted {
  /** Creates the renderer of an answer by this model. Another machine's answer to the same request is rendered anew. */
  readonly render: (model: string) => AnswerRenderer;
  /** True if the client gets the answer in one piece. */
  readonly whole: boolean;
  readonly keyId: string;
  /** The key's own salt for the caches of runtimes; undefined where keys share them. */
  readonly cacheSalt?: string | undefined;
  /** Released as soon as a part of the answer was passed on: bodies are large, and answers take long. */
  body: Uint8Array;
  /** SHA-256 of a body that is sent in parts. */
  readonly sha256: string | undefined;
  readonly traceparent: string | undefined;
  /** Id of the request in the log. */
  readonly requestId: string;
  readonly listener: JobListener;
}

const taken = new Uint8Array();

/** Limits the machines that one round offers a job to. */
const offersMax = 8;
/** Limits the rounds of ranking and offering, when all machines of a round turned out to be away. */
const roundsMax = 3;
/** Limits how often a request is placed on another machine after its machine failed. */
const failoversMax = 2;

/** Faults that another machine may avoid. A runtime timeout is not among them: it would take as long again. */
const worthAnother: ReadonlySet<FaultCode> = new Set([
  "agent_disconnected",
  "agent_offline",
  "internal_error",
  "model_not_found",
  "runtime_offline",
  "server_is_overloaded",
  "shutting_down",
  "upstream_error",
]);

type Ended = Extract<JobOutcome, { outcome: "end" }>;
type Faulted = Extract<JobOutcome, { outcome: "fault" }>;

/** The outcome of a job that a machine took, and the machine. */
interface Ran {
  readonly outcome: Ended | Faulted;
  readonly by: Chosen;
}

interface Failed extends Ran {
  readonly outcome: Faulted;
}

/**
 * Finds a machine for a request and follows its job to the end, or throws the fault of the request. A job that fails
 * before any part of its answer was passed on is placed on another machine. The client then loses only time.
 */
export class JobPlacer {
  readonly #options: PlacerOptions;
  readonly #budget: RetryBudget;
  readonly #deadly: DeadlyRequests;

  constructor(options: PlacerOptions) {
    this.#options = options;
    this.#budget = new RetryBudget(options.clock);
    this.#deadly = new DeadlyRequests(options.timing);
  }

  async run(placement: Placement): Promise<EndPayload> {
    const { jobs, ranking, clock, timing } = this.#options;
    jobs.insistOnConnection();
    this.#deadly.refuse(placement, clock.now());
    this.#budget.asked();
    try {
      const ranked = ranking.rankNow(placement) ?? (await ranking.rank(placement));
      const deadlineMs = clock.now() + timing.jobTotalMs;
      const { outcome, by } = await this.#offerUntilTaken(placement, ranked, { deadlineMs, isFirst: true });
      return outcome.outcome === "end" ? outcome.end : await this.#runElsewhere(placement, { outcome, by }, deadlineMs);
    } catch (thrown) {
      throw this.#soonThere(Fault.from(thrown));
    }
  }

  /**
   * True if a machine can take a request now, as far as the gateway knows without waiting. Throws while this gateway is
   * cut off from the broker.
   */
  hasTaker(wanted: Wanted): boolean {
    this.#options.jobs.insistOnConnection();
    return this.#options.ranking.hasTaker(wanted);
  }

  /**
   * Throws the fault of a request that no machine can take now. Called before the limits of the request's key are
   * checked.
   */
  async insistOnTaker(wanted: Wanted): Promise<void> {
    this.#options.jobs.insistOnConnection();
    try {
      await this.#options.ranking.insistOnTaker(wanted);
    } catch (thrown) {
      throw this.#soonThere(Fault.from(thrown));
    }
  }

  /**
   * Shortens the retry time of `agent_offline` to 1 s just after this gateway's own reconnect. A client then need not
   * wait as long as for a machine that is away.
   */
  #soonThere(fault: Fault): Fault {
    const { code, message, param } = fault;
    const isSoonThere = code === "agent_offline" && this.#options.jobs.justConnected;
    return isSoonThere ? new Fault(code, { message, param, retryAfterSeconds: 1 }) : fault;
  }

  /** Places a failed request on other machines, as long as another machine may do better. */
  async #runElsewhere(placement: Placement, first: Failed, deadlineMs: number): Promise<EndPayload> {
    const { ranking, meter, log } = this.#options;
    const tried = new Set<string>();
    let failed = first;
    for (;;) {
      const { outcome, by } = failed;
      const { fault, said } = outcome;
      this.#blame(placement, failed);
      tried.add(by.machine);
      if (said || !this.#isWorthAnother(placement, fault)) throw fault;
      const ranked = ranking.others(placement, tried);
      if (ranked.length === 0 || tried.size > failoversMax || !this.#hasBudget()) throw fault;
      const { requestId: request, keyId: key } = placement;
      const { machine, model } = by;
      meter?.failedOver(machine, fault.code);
      log.info(
        { request, key, model: model.id, machine, code: fault.code, internal: fault.reason },
        "a job goes to another machine",
      );
      let ran: Ran;
      try {
        ran = await this.#offerUntilTaken(placement, ranked, { deadlineMs, isFirst: false });
      } catch {
        // The first fault says more than the faults of the other machines.
        throw fault;
      }
      if (ran.outcome.outcome === "end") return ran.outcome.end;
      failed = { outcome: ran.outcome, by: ran.by };
    }
  }

  /** True if another machine may do better. Throws `poison_request` if the request is too dangerous for any machine. */
  #isWorthAnother(placement: Placement, { code }: Fault): boolean {
    if (placement.signal.aborted || !worthAnother.has(code)) return false;
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
  #blame(placement: Placement, { outcome: { fault }, by }: Failed): void {
    const { breakers, jobs, clock, log, meter } = this.#options;
    // Machines drop the jobs of a gateway that stood still or was cut off. That is no failure of the machine.
    const wasAway = fault.code === "agent_disconnected" && jobs.wasAway;
    if (placement.signal.aborted || wasAway) return;
    const nowMs = clock.now();
    const { machine, model } = by;
    if (breakers.failed(machine, model.id, { code: fault.code, nowMs, reason: fault.reason })) {
      meter?.breakerOpened(machine);
      log.warn({ machine, model: model.id }, "this model fails all the time on this machine, which is asked last");
    }
    if (placement.body === taken) return;
    if (fault.runtimeDied) this.#deadly.died("runtime", machine, placement, nowMs);
    else if (fault.code === "agent_disconnected") this.#deadly.died("machine", machine, placement, nowMs);
  }

  /**
   * Offers a job to one machine after the other until one takes it, and follows it there. If all machines turn out to
   * be away, it ranks again. Other machines may have come, or may come back in the time that requests may wait.
   */
  async #offerUntilTaken(
    placement: Placement,
    first: readonly Chosen[],
    { deadlineMs, isFirst }: { readonly deadlineMs: number; readonly isFirst: boolean },
  ): Promise<Ran> {
    const { breakers, clock, ranking } = this.#options;
    let ranked = first;
    for (let rounds = 1; ; rounds += 1) {
      const offers = Math.min(ranked.length, offersMax);
      let refusal: Fault | undefined;
      for (let place = 0; place < offers; place += 1) {
        const by = ranked[place];
        if (by === undefined) break;
        const nowMs = clock.now();
        const remainingMs = Math.max(0, deadlineMs - nowMs);
        breakers.placed(by.machine, by.model.id, nowMs);
        const outcome = await this.#offer({ placement, chosen: by, isLast: place === offers - 1, remainingMs });
        if (outcome.outcome === "end") {
          breakers.worked(by.machine, by.model.id);
          this.#deadly.worked(placement);
        }
        if (outcome.outcome !== "not-taken") return { outcome, by };
        placement.listener.onRefused?.(outcome.fault);
        if (outcome.fault.code === "server_is_overloaded") this.#noteBusy(by);
        if (refusal === undefined || outcome.fault.code === "server_is_overloaded") refusal = outcome.fault;
      }
      const fault = this.#toldWhen(refusal ?? machineOffline(), placement);
      if (rounds === roundsMax || !isFirst || fault.code !== "agent_offline") throw fault;
      ranked = await ranking.rank(placement);
    }
  }

  /** Counts a busy that contradicts the machine's own presence. */
  #noteBusy(by: Chosen): void {
    const { routes, log } = this.#options;
    if (!routes.saidBusy(by)) return;
    const { machine, model } = by;
    log.warn(
      { machine, model: model.id, contradictionsMax },
      "a machine said busy again and again though its presence told a free slot; it is asked last",
    );
  }

  /** Adds the expected retry time to a fault that says that all machines are full. */
  #toldWhen(refusal: Fault, placement: Placement): Fault {
    const { code, message, internal, param } = refusal;
    if (code !== "server_is_overloaded") return refusal;
    const retryAfterSeconds = this.#options.routes.retryAfterSeconds(placement);
    return new Fault(code, { message, internal, param, retryAfterSeconds });
  }

  #offer({ placement, chosen, isLast, remainingMs }: Offer): Promise<JobOutcome> {
    const { timing, jobs, routes } = this.#options;
    const { kind, keyId, cacheSalt, whole, traceparent, listener, signal } = placement;
    const id = newToken();
    const model = chosen.model.id;
    listener.onOffer?.({ job: id, machine: chosen.machine, model, window: chosen.model.context_window });
    return jobs.run({
      target: chosen,
      head: { id, kind, model, keyId, cacheSalt, whole, remainingMs, traceparent },
      body: placement.body,
      sha256: placement.sha256,
      acceptWithinMs: isLast ? timing.lostAfterMs : timing.acceptWaitMs * 2,
      listener: new RenderedAnswer(placement.render(model), listener),
      placed: new PlacedRequest(placement, chosen, routes),
      signal,
    });
  }
}

/** A request on the machine that it is offered to. It reports the job's course to `JobRoutes`. */
class PlacedRequest implements PlacedJob {
  readonly #placement: Placement;
  readonly #chosen: Chosen;
  readonly #routes: Pick<JobRoutes, "took" | "answered">;
  readonly #pending: PendingJob;

  constructor(placement: Placement, chosen: Chosen, routes: Pick<JobRoutes, "placed" | "took" | "answered">) {
    this.#placement = placement;
    this.#chosen = chosen;
    this.#routes = routes;
    this.#pending = routes.placed(chosen);
  }

  accepted(): void {
    this.#pending.accepted();
    this.#routes.took(this.#chosen);
  }

  bodyTaken(): void {
    this.#placement.body = taken;
  }

  ended(outcome: JobOutcome): void {
    this.#pending.ended();
    if (outcome.outcome === "end") this.#routes.answered(this.#chosen, this.#placement.needs, outcome.end);
  }
}

interface Offer {
  readonly placement: Placement;
  readonly chosen: Chosen;
  /** No other machine is asked after this one, so it has more time to answer. */
  readonly isLast: boolean;
  readonly remainingMs: number;
}
