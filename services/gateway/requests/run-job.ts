import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Attempt } from "../jobs/answer-parts.ts";
import type { JobOutcome } from "../jobs/job-events.ts";
import { machineOffline } from "../jobs/machine-fault.ts";
import type { Chosen } from "../routing/choose-machine.ts";
import type { PlacedJob } from "../routing/placement-memory.ts";
import {
  anyOf,
  type TargetedWork,
  rankAwaited,
  type RankedTarget,
  rankNow,
  type Unfinished,
  wantedBy,
} from "./choose.ts";
import { barredFrom, type JobRun, NextMachine, type NextMachineOptions } from "./next-machine.ts";
import type { ModelRequest } from "./request.ts";

/** Limits the machines that one round offers a job to. */
const offersMax = 8;
/** The machines next in the ranking that the record of a request names. */
const nextTold = 3;

/**
 * Finds a machine for a request and follows its job to the end, or throws the fault of the request. A job that fails
 * before any part of its answer was passed on is placed on another machine. The client then loses only time.
 */
export class JobRunner {
  readonly #options: NextMachineOptions;
  readonly #next: NextMachine;

  constructor(options: NextMachineOptions) {
    this.#options = options;
    this.#next = new NextMachine(options);
  }

  /**
   * Throws the fault of a request that no machine can take now. Called before the limits of the request's key are
   * checked.
   */
  async assertTaker(wanted: TargetedWork, request: ModelRequest, signal: AbortSignal): Promise<void> {
    const { jobs, ranking, placements, clock } = this.#options;
    jobs.assertConnection();
    const targets = wantedBy(wanted, signal);
    if (targets.some((target) => placements.canPlace(target))) return;
    const sinceMs = clock.now();
    try {
      await anyOf(targets.map((target) => ranking.rank(target)));
    } catch (thrown) {
      throw await this.#next.forClient(Fault.from(thrown), request, sinceMs);
    }
  }

  /** Runs a request on one machine after the other, as `afterFault` decides, until one has answered it. */
  async run(request: ModelRequest, signal: AbortSignal): Promise<void> {
    const { jobs, clock, timing, refusedEfforts } = this.#options;
    const { deadly, requests } = this.#next;
    const { work } = request;
    jobs.assertConnection();
    const sinceMs = clock.now();
    if (deadly.remembered.size > 0) deadly.refuse(request, sinceMs);
    requests.count += 1;
    if (work.effort !== undefined && refusedEfforts.has(work)) work.leaveEffort();
    const run = { request, targets: wantedBy(work, signal), signal, deadlineMs: sinceMs + timing.jobTotalMs };
    try {
      let at = rankNow(this.#options, run.targets) ?? (await rankAwaited(this.#options, run.targets));
      for (;;) {
        const unfinished = await this.#offerInTurn(run, at);
        if (unfinished === undefined) return;
        at = await this.#next.after(run, at, unfinished);
      }
    } catch (thrown) {
      throw await this.#next.forClient(Fault.from(thrown), request, sinceMs);
    }
  }

  /** Offers a job to one machine after the other until one takes it, and follows it there. Undefined once it is answered. */
  async #offerInTurn(run: JobRun, at: RankedTarget): Promise<Unfinished | undefined> {
    const { request, signal } = run;
    const { breakers, clock } = this.#options;
    const offers = at.ranked.slice(0, offersMax);
    let refusal: Fault | undefined;
    for (const [index, by] of offers.entries()) {
      const barred = by.causes && (await barredFrom(request, by));
      if (barred !== undefined) {
        refusal ??= barred;
        continue;
      }
      breakers.placed(by.machine, by.model.id, clock.now());
      let outcome: JobOutcome;
      try {
        outcome = await this.#offer(run, at, { by, index, isLast: by === offers.at(-1) });
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        return { fault: Fault.from(thrown) };
      }
      if (outcome.kind === "end") {
        breakers.worked(by.machine, by.model.id);
        if (request.work.madePrint !== undefined) this.#next.deadly.worked(request);
        return undefined;
      }
      const { fault } = outcome;
      if (outcome.taken) {
        this.#next.blame(run, fault, by);
        return { fault, by };
      }
      refusal = this.#next.refusedBy(by, fault, refusal);
    }
    return { fault: this.#next.withRetryAfter(refusal ?? machineOffline(), at.wanted) };
  }

  #offer(
    run: JobRun,
    at: RankedTarget,
    { by: chosen, index, isLast }: { readonly by: Chosen; readonly index: number; readonly isLast: boolean },
  ): Promise<JobOutcome> {
    const { timing, jobs, placements, clock } = this.#options;
    const { request, signal } = run;
    const { wanted, continuation } = at;
    const { work, answer } = request;
    const job = newToken();
    const body = continuation?.body ?? work.body;
    const head = request.headOf({ isWhole: continuation === undefined });
    answer.onOffer({ job, chosen, next: at.ranked.slice(index + 1, index + 1 + nextTold) });
    const placed = placements.placed(chosen, wanted, { whole: head.whole });
    const inParts = body.byteLength > limits.partBytes;
    const isKept = head.resumable !== undefined;
    answer.attempts(new OfferedJob({ run, at, chosen, job, placed, inParts, isKept, placements, next: this.#next }));
    return jobs.run({
      target: chosen,
      head: { id: job, model: chosen.model.id, remainingMs: Math.max(0, run.deadlineMs - clock.now()), ...head },
      body,
      sha256: continuation === undefined ? work.sha256 : undefined,
      // No other machine is asked after the last one, so it has more time to answer.
      ...(!isLast && { acceptWithinMs: timing.acceptWaitMs * 2 }),
      owner: answer,
      signal,
    });
  }
}

interface OfferedOptions extends Pick<NextMachineOptions, "placements"> {
  readonly run: JobRun;
  readonly at: RankedTarget;
  readonly chosen: Chosen;
  readonly job: string;
  readonly placed: PlacedJob;
  /** True if the body follows the job in parts, which the gateway that has the body has to send. */
  readonly inParts: boolean;
  /** True if the answer can be resumed at any gateway. */
  readonly isKept: boolean;
  readonly next: NextMachine;
}

/** A job of a request at one machine, as the memory of routing hears of it. */
class OfferedJob implements Attempt {
  readonly #options: OfferedOptions;
  #isOver = false;

  constructor(options: OfferedOptions) {
    this.#options = options;
  }

  accepted(): void {
    const { placed, placements, chosen, inParts } = this.#options;
    placed.accepted();
    if (!inParts) this.#given();
    placements.took(chosen);
  }

  begun(): void {
    const { placed, inParts } = this.#options;
    placed.answering();
    if (inParts) this.#given();
  }

  said(): void {
    this.#options.run.request.releaseBody();
  }

  /** An answer that refuses its end leaves the job meanwhile: then the failure came first. */
  over(outcome: JobOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.placed.ended(outcome.kind === "end" ? outcome : undefined);
  }

  mayGoOn(): boolean {
    const { next, run, at, chosen } = this.#options;
    return next.mayGoOn(run, at, chosen);
  }

  /** The machine has the job with its whole body: no gateway is needed any more to run it. */
  #given(): void {
    const { run, chosen, job, isKept } = this.#options;
    if (isKept) run.request.work.given({ machine: chosen.machine, job });
  }
}
