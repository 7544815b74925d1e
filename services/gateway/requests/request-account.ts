import { setImmediate as nextTurn } from "node:timers/promises";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { AnswerCourse, type AnswerMeter, type AnswerRenderer, type AnswerWriter } from "../jobs/answer-course.ts";
import { type ContinuationRoom, DeliveredAnswer } from "../jobs/continue-answer.ts";
import type { JobOffer } from "../jobs/answer-course.ts";
import type { ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { EarlyLimits } from "./limit-responses.ts";
import { limitFault } from "./limit-responses.ts";
import { resumesAnswer } from "./resumable-answer.ts";
import type { ReadRequest } from "./read-request.ts";
import { clampTokens, windowTokensMax, type TokenCeiling, type TokenCounts } from "../limits/token-estimates.ts";
import { boundOf, GrowingHold } from "../limits/growing-hold.ts";
import { budgetPeriodAt } from "../limits/judge-demand.ts";
import { assertMayLoad, type CausedLoad } from "../limits/load-limit.ts";
import {
  noSeat,
  type Admission,
  type Demand,
  type Hold,
  type Limits,
  type LimitStatus,
  type SeatedAnswer,
} from "../limits/limits.ts";
import type { RecordedRefusals } from "./record-request.ts";
import { recordOf, type RequestSender } from "./record-request.ts";
import { type RequestFacts, type RequestOutcome } from "../http/request-state.ts";
import type { Settlements } from "../limits/settlements.ts";

/** Outcomes of requests whose model may never have existed. */
const inventedIn: ReadonlySet<string> = new Set(["model_not_found", "backend_unavailable", "client_closed"]);

/** Outcomes of requests that their own side gave up while a machine may have worked for them. */
const leftIn: ReadonlySet<string> = new Set(["client_closed", "slow_client", "key_invalid", "key_expired"]);

/**
 * The wait before a second try for a seat. A request that has just ended at another gateway, or whose client has just
 * left, may give its seat back a moment later.
 */
export const seatAgainMs = 150;

export interface AccountDependencies {
  readonly limits: Limits;
  readonly early?: Pick<EarlyLimits, "note" | "forget">;
  /** Absent where no records of requests are kept. */
  readonly recorded?: Pick<RecordedRefusals, "refused"> | undefined;
  readonly settlements: Settlements;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
  readonly meter?: AnswerMeter;
  /** Absent where no machine goes on with what another one began. */
  readonly continuations?: ContinuationRoom | undefined;
}

interface Demanding extends Pick<ReadRequest, "promptTokens" | "tokens" | "ceiling"> {
  /** The price of a second of a recording, whose server may report its length. */
  readonly tokensPerSecond?: number | undefined;
  readonly signal: AbortSignal;
}

/** The rate-limit status of a key after a request asked to run, and the fault that ends the request if it may not. */
export interface LimitOutcome {
  readonly limitStatus: LimitStatus;
  readonly fault: Fault | undefined;
}

const unlimited: LimitOutcome = { limitStatus: {}, fault: undefined };

/**
 * The account of one request with its key, from the authentication of the key to the one end of the request. It covers
 * admission under the key's limits, and one usage record at that end. The book knows what each request under way used
 * some 100 ms ago, for the case that its gateway is killed. A machine reports token counts as usage of an end or fault
 * frame, output tokens of data frames, and progress of beats. All of them are clamped to what is possible before they
 * are booked, logged or measured. Usage in an answer's own bytes reaches its client as the machine wrote it.
 */
export class RequestAccount {
  readonly #dependencies: AccountDependencies;
  readonly #request: string;
  readonly #key: KeyRecord;
  readonly #from: RequestSender;
  readonly #startedAtMs: number;
  readonly #course: AnswerCourse;
  #model: string | undefined;
  /** The first target of the route that the model's name leads to. */
  #routedTo: string | undefined;
  #streamed = false;
  #hold: Hold | undefined;
  #growing: GrowingHold | undefined;
  /** The limit that has ended the answer, and the one that refused the request. */
  #cutBy: string | undefined;
  #refusedBy: string | undefined;
  #mayLoad: Promise<void> | undefined;
  #promptTokens = 0;
  #ceiling: TokenCeiling | undefined;
  /** The price of a second of a recording, whose server reports seconds in place of tokens. */
  #tokensPerSecond: number | undefined;
  #outcome: RequestOutcome | undefined;
  #endedAtMs: number | undefined;
  /** True while admission is pending. The request is then settled once the admission resolves. */
  #admitting = false;
  #closed = false;
  /** True for a request that resumes an answer. */
  #isResuming = false;
  /** True for a request with an `Idempotency-Key`. All requests with one name count as one, unless the answer is made anew. */
  isOnce = false;
  /** The machine that had the answer of that name before, and has lost it. */
  anewAfter: string | undefined;
  #stays: Promise<unknown> | undefined;
  #status = 0;

  constructor(
    request: {
      readonly id: string;
      readonly key: KeyRecord;
      readonly from: RequestSender;
      readonly arrivedAtMs?: number;
    },
    dependencies: AccountDependencies,
  ) {
    this.#request = request.id;
    this.#key = request.key;
    this.#from = request.from;
    this.#dependencies = dependencies;
    this.#startedAtMs = request.arrivedAtMs ?? dependencies.clock.now();
    this.#course = new AnswerCourse(dependencies);
    dependencies.settlements.follow(this);
  }

  asksFor(model: string, { streamed }: { readonly streamed: boolean }): void {
    this.#model = model;
    this.#streamed = streamed;
  }

  /** Books the request under the model that answers, because the name that was asked for is that of a route. */
  routedTo(firstTarget: string): void {
    this.#routedTo = firstTarget;
  }

  get facts(): RequestFacts {
    const { tried, machine, model, failovers, acceptedAtMs, loadWaitMs } = this.#course;
    const startedAtMs = this.#startedAtMs;
    const { promptTokens, completionTokens } = this.#taken();
    return {
      key: this.#key.id,
      model: this.#model,
      streamed: this.#streamed,
      outcome: this.#outcome,
      answer: {
        jobs: tried.map(({ offer }) => offer.job),
        machine,
        model,
        failovers,
        acceptedMs: since(startedAtMs, acceptedAtMs),
        loadWaitMs,
        firstTokenMs: since(startedAtMs, this.#firstAtMs),
        endedMs: since(startedAtMs, this.#endedAtMs),
        promptTokens,
        completionTokens,
      },
    };
  }

  /**
   * Asks for admission under the key's limits. The request may run unless the returned fault names the limit that it
   * would break.
   */
  async admit({ promptTokens, tokens, ceiling, tokensPerSecond, signal }: Demanding): Promise<LimitOutcome> {
    // An aborted request is already settled: nothing would release a hold that it takes from now on.
    signal.throwIfAborted();
    if (this.#isResuming) this.#leaveResumed();
    this.#promptTokens = promptTokens;
    this.#ceiling = ceiling;
    this.#tokensPerSecond = tokensPerSecond;
    return this.#ask({ tokens, promptTokens, seat: newToken() }, signal);
  }

  /** Asks for admission of a count of tokens, which runs no model. */
  async admitCount(signal: AbortSignal): Promise<LimitOutcome> {
    signal.throwIfAborted();
    if (this.#key.limits?.requestsPerMinute === undefined) return unlimited;
    return this.#ask({ tokens: 0, seat: noSeat }, signal);
  }

  /** Counts an answer that the client resumes. It was admitted before, so that no limit of the key is asked. */
  resumes(ceiling: TokenCeiling): void {
    const { id: keyId, limits } = this.#key;
    this.#leaveResumed();
    this.#isResuming = true;
    this.#ceiling = ceiling;
    if (limits !== undefined) this.#hold = this.#dependencies.limits.occupy({ keyId, limits, seat: newToken() });
  }

  /** Forgets an answer that could not be resumed, so that the request can ask for a new one. */
  #leaveResumed(): void {
    if (this.#hold !== undefined) this.#dependencies.settlements.leave(this.#hold);
    this.#hold = undefined;
    this.#isResuming = false;
    this.#course.offerOf = this.#course.countedTokens = undefined;
  }

  /** Throws the fault of a request whose key may not cause a load now. A request pays for one load at most. */
  async assertMayLoad(load: CausedLoad): Promise<void> {
    this.#mayLoad ??= assertMayLoad(this.#key, load, this.#dependencies.limits);
    await this.#mayLoad.catch((thrown: unknown) => {
      this.#refusedBy = "loads";
      throw thrown;
    });
  }

  async #ask(asked: Omit<Demand, "keyId" | "limits">, signal: AbortSignal): Promise<LimitOutcome> {
    const { id: keyId, limits } = this.#key;
    if (limits === undefined) return unlimited;
    const { limits: book, clock } = this.#dependencies;
    const demand = { keyId, limits, ...asked };
    this.#admitting = true;
    try {
      let admission = await book.admit(demand);
      if (isRetryable(admission)) {
        await sleep(clock, seatAgainMs, signal);
        admission = await book.admit({ ...demand, seat: newToken() });
      }
      return this.#place(demand, admission);
    } finally {
      this.#admitting = false;
      if (this.#closed) this.#settle();
    }
  }

  #place(demand: Demand, admission: Admission): LimitOutcome {
    const { limitStatus } = admission;
    if (admission.outcome === "refused") {
      this.#refusedBy = admission.by;
      this.#dependencies.early?.note(demand.limits, admission);
      return { limitStatus, fault: limitFault(admission, demand) };
    }
    if (demand.seat === noSeat) return { limitStatus, fault: undefined };
    this.#hold = admission.hold;
    this.#dependencies.settlements.begin(admission.hold);
    return { limitStatus, fault: undefined };
  }

  /**
   * Follows an answer on its way to `writer`. `render` creates the renderer of an answer by a model. The answer is left
   * through `leaving` where the limits of its key have nothing left for it.
   */
  following(
    writer: AnswerWriter,
    {
      render,
      leaving,
      mayContinue = false,
    }: {
      readonly render: (model: string, offer: JobOffer, resumed?: ResumedAnswer) => AnswerRenderer;
      readonly leaving: AbortController;
      /** True if another machine may go on with the answer. */
      readonly mayContinue?: boolean;
    },
  ): AnswerCourse {
    const { settlements, continuations: room } = this.#dependencies;
    const onSpent = (by: string): void => {
      if (this.#closed || leaving.signal.aborted) return;
      this.#cutBy = by;
      leaving.abort(new Fault("insufficient_quota", { message: "The key of this request has no tokens left." }));
    };
    if (this.#hold !== undefined && this.mayGrow)
      this.#growing = new GrowingHold(this.#hold, { promptTokens: this.#promptTokens, settlements, onSpent });
    const isLet = mayContinue && this.#key.continues !== false;
    const delivered = isLet && room !== undefined ? new DeliveredAnswer(room) : undefined;
    return this.#course.following(writer, { streamed: this.#streamed, render, bound: this.#growing, delivered });
  }

  /** True if the answer may become longer than its hold. */
  get mayGrow(): boolean {
    const { answers = 0, answerTokens = Infinity } = this.#ceiling ?? {};
    if (this.#hold === undefined) return false;
    if (this.#isResuming) return boundOf(this.#hold).tokens < Infinity;
    if (answers === 0) return false;
    return boundOf(this.#hold).tokens < this.#promptTokens + answers * answerTokens;
  }

  /** The limit of the key at which the answer was left. */
  get cutBy(): string | undefined {
    return this.#cutBy;
  }

  /** Ends an answer that was left at a limit, as if it had reached `max_tokens`. */
  endShort(): void {
    this.#course.endShort({ promptTokens: this.#promptTokens, answers: this.#ceiling?.answers ?? 1 });
  }

  /**
   * Records the outcome. Only the first call counts: a failure that the first outcome leads to is not another outcome.
   */
  endedIn(outcome: RequestOutcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#endedAtMs = this.#dependencies.clock.now();
  }

  /** True if several machines made the answer, none of which has all of it. */
  get hasMoved(): boolean {
    return this.#course.tried.some(({ fromTokens }) => fromTokens !== undefined);
  }

  /** Keeps the account open until `over`, also if the client leaves before: it may come back for its answer. */
  staysUntil(over: Promise<unknown>): void {
    this.#stays = over;
  }

  /**
   * Settles the request, once. A request without a recorded outcome was left by its client. `status` is the one that its
   * client got, or would have got.
   */
  close(status: number): void {
    const stays = this.#stays;
    this.#stays = undefined;
    if (stays !== undefined) {
      const close = (): void => this.#close(status);
      void stays.then(close, close);
      return;
    }
    this.#close(status);
  }

  /**
   * Settles an answer that is whole. Resolves once the book was told of it: only then may its client get the last byte, so
   * that the book has each answer that its client has, also if this gateway is killed.
   */
  async ended(status: number): Promise<void> {
    this.endedIn("ok");
    this.#close(status);
    // The settlement leaves at the end of this turn.
    await nextTurn();
  }

  #close(status: number): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#status = status;
    this.endedIn("client_closed");
    this.#course.end();
    if (!this.#admitting) this.#settle();
  }

  /** Returns what is booked of this request if its gateway is killed now; undefined while no machine works for it. */
  usedSoFar(): UsageRow | undefined {
    const { machine, toldTokens = Infinity, countedTokens = 0 } = this.#course;
    if (machine === undefined) return undefined;
    const taken = this.#taken();
    const completionTokens = Math.min(taken.completionTokens, Math.max(0, toldTokens - countedTokens));
    return this.#usage(this.#outcome ?? "gateway_lost", { ...taken, completionTokens });
  }

  /** The answer of this request, if it can be resumed. */
  get answer(): SeatedAnswer | undefined {
    const { tried, toldTokens, countedTokens } = this.#course;
    const job = tried.at(-1)?.offer.job;
    if (toldTokens === undefined || job === undefined) return undefined;
    return { job, seat: this.#hold?.seat ?? this.#request, isResumed: countedTokens !== undefined };
  }

  /** Returns the record of this request for that case. */
  recordSoFar(): string | undefined {
    const { recorded, clock } = this.#dependencies;
    const totalMs = Math.round(clock.now() - this.#startedAtMs);
    return recorded && this.#written(totalMs, { outcome: this.#outcome ?? "gateway_lost", status: 200 });
  }

  /** The time of the first token. A whole answer has none, as its client sees all of it at once. */
  get #firstAtMs(): number | undefined {
    return this.#streamed ? this.#course.firstAtMs : undefined;
  }

  #usage(outcome: RequestOutcome, { promptTokens, completionTokens }: TokenCounts): UsageRow {
    const { clock } = this.#dependencies;
    const { countedTokens, isMoved } = this.#course;
    const firstAtMs = this.#firstAtMs;
    const hasLeft = outcome === "client_closed" && this.#course.machine === undefined;
    // A client may give up the gateway at which it wanted to resume its answer.
    const isGivenUp = outcome === "client_closed" && resumesAnswer(this.#from.headers) && countedTokens === undefined;
    const isResumed = countedTokens !== undefined || isGivenUp || (this.isOnce && (this.#isResuming || hasLeft));
    return {
      day: budgetPeriodAt("day", clock.wall()).name,
      keyId: this.#key.id,
      model: this.#bookedModel(outcome),
      // A request that resumes an answer is no other request: the one before it is in the books.
      requests: isResumed ? 0 : 1,
      failed:
        outcome === "ok" || isMoved || isGivenUp || (this.isOnce && isResumed && outcome === "client_closed") ? 0 : 1,
      promptTokens,
      completionTokens,
      answered: firstAtMs === undefined || isResumed ? 0 : 1,
      firstTokenMs: firstAtMs === undefined || isResumed ? 0 : Math.round(firstAtMs - this.#startedAtMs),
      durationMs: Math.round(clock.now() - this.#startedAtMs),
    };
  }

  #settle(): void {
    const { early, settlements } = this.#dependencies;
    const { machine } = this.#course;
    const counted = this.#taken();
    const usage = this.#usage(this.#outcome ?? "client_closed", counted);
    const usedTokens = counted.promptTokens + counted.completionTokens;
    if (this.#hold !== undefined && machine === undefined) early?.forget(this.#hold.limits);
    const hold = this.#growing?.hold ?? this.#hold;
    const request = this.#record(usage.durationMs);
    settlements.end({
      hold,
      ran: machine !== undefined || this.#isResuming,
      usedTokens,
      usage,
      request,
      account: this,
    });
    this.#tellNotBelieved(counted);
  }

  /** Returns the record of this request as JSON; undefined if it gets none. */
  #record(totalMs: number): string | undefined {
    const { recorded } = this.#dependencies;
    const isRefused = this.#outcome !== "ok" && this.#course.tried.length === 0;
    const refusedBefore = isRefused ? recorded?.refused(this.#key.id) : 0;
    if (recorded === undefined || refusedBefore === undefined) return undefined;
    return this.#written(totalMs, { status: this.#status, refusedBefore: refusedBefore || undefined });
  }

  #written(
    totalMs: number,
    told: { readonly status: number; readonly outcome?: RequestOutcome; readonly refusedBefore?: number | undefined },
  ): string {
    const { status, outcome = this.#outcome, refusedBefore } = told;
    return JSON.stringify(
      recordOf({
        id: this.#request,
        at: this.#dependencies.clock.wall() - totalMs,
        keyId: this.#key.id,
        from: this.#from,
        facts: { ...this.facts, outcome },
        course: this.#course,
        startedAtMs: this.#startedAtMs,
        status,
        totalMs,
        limit: this.#cutBy ?? this.#refusedBy,
        anewAfter: this.anewAfter,
        refusedBefore,
      }),
    );
  }

  #tellNotBelieved(counted: TokenCounts): void {
    const { log, meter } = this.#dependencies;
    const { machine } = this.#course;
    const reported = this.#reported();
    const isBelieved =
      reported.promptTokens === counted.promptTokens && reported.completionTokens === counted.completionTokens;
    if (isBelieved || machine === undefined) return;
    meter?.usageNotBelieved(machine);
    log.warn(
      {
        request: this.#request,
        key: this.#key.id,
        model: this.#model,
        machine,
        window: this.#window,
        reported,
        counted,
      },
      "a machine reported more tokens than the request can have used, of which only the possible ones are counted; if the window of its model is larger, set context_window in its TRUNKLINE_MODELS_FILE",
    );
  }

  /**
   * Returns the model name for the books, or null for a name that may be the client's own invention. Invented names
   * would fill the books without end.
   */
  #bookedModel(outcome: RequestOutcome): string | null {
    const isInvented = this.#course.machine === undefined && inventedIn.has(outcome);
    if (isInvented) return null;
    const asked = this.#routedTo === undefined ? this.#model : (this.#course.model ?? this.#routedTo);
    return asked ?? null;
  }

  get #window(): number {
    return Math.min(this.#course.window ?? windowTokensMax, windowTokensMax);
  }

  /** The tokens that are booked, logged and measured. */
  #taken(): TokenCounts {
    const reported = this.#reported();
    return this.#ceiling === undefined ? reported : clampTokens(reported, this.#ceiling, this.#window);
  }

  /**
   * Returns the usage that the machine reported. Without a report, it counts the tokens that were delivered. For a
   * whole answer that was left early, it counts the tokens that the machine had made. The prompt then counts as it was
   * estimated, if a machine worked on it.
   */
  #reported(): TokenCounts {
    const { usage, outputTokens, madeTokens, hasBegun, firstAtMs, countedTokens, isMoved } = this.#course;
    if (countedTokens !== undefined) {
      const completionTokens = Math.max(0, (usage?.completionTokens ?? outputTokens) - countedTokens);
      return { promptTokens: 0, completionTokens };
    }
    const perSecond = this.#tokensPerSecond;
    if (usage?.seconds !== undefined && perSecond !== undefined)
      return { promptTokens: Math.ceil(usage.seconds * perSecond), completionTokens: 0 };
    if (usage !== undefined) return { promptTokens: usage.promptTokens, completionTokens: usage.completionTokens };
    const most = this.#window * (this.#ceiling?.prompts ?? 1);
    // A recording of silence has an empty text, which comes without a token.
    const isOver = firstAtMs !== undefined || this.#outcome === "ok";
    const worked = hasBegun && leftIn.has(this.#outcome ?? "client_closed");
    return {
      promptTokens: isOver || worked || isMoved ? Math.min(this.#promptTokens, most) : 0,
      completionTokens: worked && !this.#streamed && !isMoved ? Math.max(outputTokens, madeTokens) : outputTokens,
    };
  }
}

function isRetryable(admission: Admission): boolean {
  return admission.outcome === "refused" && admission.by === "concurrency";
}

function since(startedAtMs: number, atMs: number | undefined): number | undefined {
  return atMs === undefined ? undefined : atMs - startedAtMs;
}
