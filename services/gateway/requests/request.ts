import { setImmediate as nextTurn } from "node:timers/promises";
import { Fault } from "#shared/fault/fault.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { AnswerCourse } from "../jobs/answer-course.ts";
import type { RequestFacts, RequestOutcome } from "../http/request-state.ts";
import type { TokenCeiling } from "../limits/token-estimates.ts";
import { assertMayLoad, type CausedLoad } from "../limits/load-limit.ts";
import { oneRequest, type Reservation, type Limits, type SeatedAnswer } from "../limits/limits.ts";
import { type AskedLimits, askLimits, type Decision } from "./admit.ts";
import { mayGrow } from "./allow.ts";
import type { Demanded, RequestRate } from "./booked-tokens.ts";
import type { EarlyLimits } from "./limit-responses.ts";
import type { RequestSender } from "./record-request.ts";
import type { RequestWork } from "./request-work.ts";
import { type AskedModel, factsOf, recordNow, settle, type SettleParts, type ToldRequest, usedNow } from "./settle.ts";

export interface RequestParts extends SettleParts {
  readonly limits: Limits;
  readonly prices?: { readonly currency?: string | undefined } | undefined;
  readonly early?: EarlyLimits | undefined;
}

interface OpenedRequest extends Pick<ModelRequest, "id" | "key" | "books" | "from" | "leaving"> {
  readonly arrivedAtMs?: number;
}

/**
 * The states of a request. It is read and judged while it is `open`; its answer tells what its machines did.
 *
 * | state    | event                                    | next    |
 * | -------- | ---------------------------------------- | ------- |
 * | open     | the book of its key is asked             | asking  |
 * | asking   | the book has answered                    | open    |
 * | asking   | its answer closes                        | left    |
 * | left     | the book has answered                    | settled |
 * | open     | its answer closes, or is whole           | settled |
 */
type RequestPhase = "open" | "asking" | "left" | "settled";

/**
 * One request with its key, from the proof of the key to its one settlement. It covers admission to its books,
 * the work for machines, their answer, and one usage record at that end. The book knows what each request under way used
 * some 100 ms ago, for the case that its gateway is killed. A machine reports token counts as usage of an end or fault
 * frame, output tokens of data frames, and progress of beats. All of them are clamped to what is possible before they
 * are booked, logged or measured. Usage in an answer's own bytes reaches its client as the machine wrote it. Its own
 * methods alone change its fields.
 */
export class ModelRequest implements ToldRequest {
  readonly id: string;
  readonly key: KeyRecord;
  books: readonly Book[];
  /** `<key id>:<digest>` of the end user that it counts for, if any. */
  endUser: string | null = null;
  readonly startedAtMs: number;
  readonly answer: AnswerCourse;
  readonly from: RequestSender;
  asked: AskedModel | undefined;
  demanded: Demanded | undefined;
  reservation: Reservation | undefined;
  limit: string | undefined;
  outcome: RequestOutcome | undefined;
  endedAtMs: number | undefined;
  isResuming = false;
  once: ToldRequest["once"];
  status = 0;
  /** Ends the request when it aborts: with its client, or after it for an answer that is kept. */
  leaving: AbortController;
  readonly #parts: RequestParts;
  #state: RequestPhase = "open";
  #work: RequestWork | undefined;
  #mayLoad: Promise<void> | undefined;
  /** Set once the request is settled. */
  #facts: RequestFacts | undefined;
  #stays: Promise<unknown> | undefined;

  constructor({ id, key, books, from, leaving, arrivedAtMs }: OpenedRequest, parts: RequestParts) {
    this.id = id;
    this.key = key;
    this.books = books;
    this.from = from;
    this.leaving = leaving;
    this.#parts = parts;
    this.startedAtMs = arrivedAtMs ?? parts.clock.now();
    this.answer = new AnswerCourse(parts);
    parts.settlements.follow(this);
  }

  get facts(): RequestFacts {
    return this.#facts ?? factsOf(this);
  }

  /** True if several machines made the answer, none of which has all of it. */
  get hasMoved(): boolean {
    return this.answer.tried.some(({ fromTokens }) => fromTokens !== undefined);
  }

  get isOver(): boolean {
    return this.#state === "left" || this.#state === "settled";
  }

  asksFor(asked: AskedModel): void {
    this.asked = asked;
  }

  /** Counts the request for an end user of its key's app, in a book that stands before the others. */
  isFor(endUser: string, book: Book | undefined): void {
    this.endUser = endUser;
    if (book !== undefined) this.books = [book, ...this.books];
  }

  /** Takes the work of the request for its machines. */
  takes(work: RequestWork): void {
    this.#work = work;
  }

  get work(): RequestWork {
    if (this.#work === undefined) throw Fault.from(new Error("a request was run before it was read"));
    return this.#work;
  }

  /** Gives the body to the answer, which keeps it if another machine may go on with it. */
  releaseBody(): void {
    const body = this.work.releaseBody();
    this.answer.delivered?.keep(body);
  }

  /** Returns the metadata of a job of this request. A machine that goes on with an answer has a part of it only. */
  headOf({ isWhole }: { readonly isWhole: boolean }) {
    // An answer that may end at a limit of its key comes in pieces, so that its client gets what came until then.
    return this.work.headOf({ isWhole, inPieces: this.work.streamed || mayGrow(this) });
  }

  print(): string | undefined {
    return this.work.print(this.answer.delivered?.body);
  }

  /** Notes that the answer is made once for its name; anew after a machine that has lost it. */
  isMadeOnce(anewAfter?: string): void {
    this.once = { anewAfter };
  }

  /**
   * Asks for admission to its books. The request may run unless the returned fault names the limit that it
   * would break.
   */
  admit({ tokens, ...demanded }: Demanded & { readonly tokens: number }, signal: AbortSignal): Promise<Decision> {
    // An aborted request is already settled: nothing would release a reservation that it takes from now on.
    signal.throwIfAborted();
    if (this.isResuming) this.#leaveResumed();
    this.demanded = demanded;
    const { promptTokens, rate } = demanded;
    return this.#ask({ tokens, promptTokens, rate, seat: newToken() }, signal);
  }

  /** Asks for admission of a count of tokens, which runs no model. */
  admitCount(signal: AbortSignal): Promise<Decision> {
    signal.throwIfAborted();
    return this.#ask(oneRequest, signal);
  }

  async #ask(asked: AskedLimits, signal: AbortSignal): Promise<Decision> {
    this.#state = "asking";
    try {
      const decision = await askLimits(this.books, asked, signal, this.#parts);
      const { reservation, by } = decision;
      if (by !== undefined) this.limit = by;
      if (reservation !== undefined) this.#parts.settlements.begin(reservation);
      this.reservation = reservation ?? this.reservation;
      return decision;
    } finally {
      if (this.#isLeft()) this.#settle();
      else this.#state = "open";
    }
  }

  /** True if the answer has closed meanwhile. */
  #isLeft(): boolean {
    return this.#state === "left";
  }

  /** Counts an answer that the client resumes. It was admitted before, so that no limit of the key is asked. */
  resumes(ceiling: TokenCeiling, rate: RequestRate): void {
    const { books } = this;
    this.#leaveResumed();
    this.isResuming = true;
    this.demanded = { promptTokens: 0, ceiling, rate };
    if (books.length > 0) this.reservation = this.#parts.limits.occupy({ books, seat: newToken(), rate });
  }

  /** Forgets an answer that could not be resumed, so that the request can ask for a new one. */
  #leaveResumed(): void {
    if (this.reservation !== undefined) this.#parts.settlements.leave(this.reservation);
    this.reservation = undefined;
    this.isResuming = false;
    this.answer.forgetResumed();
  }

  /** The answer grew, and its reservation with it. */
  grew(reservation: Reservation): void {
    this.reservation = reservation;
  }

  /** Throws the fault of a request whose key may not cause a load now. A request pays for one load at most. */
  async assertMayLoad(load: CausedLoad): Promise<void> {
    this.#mayLoad ??= assertMayLoad(this, load, this.#parts.limits);
    await this.#mayLoad.catch((thrown: unknown) => {
      this.limit = "loads";
      throw thrown;
    });
  }

  /** Ends an answer that was left at a limit of its key, as if it had reached `max_tokens`. */
  endShort(limit: string): void {
    this.limit = limit;
    const { promptTokens = 0, ceiling } = this.demanded ?? {};
    this.answer.endShort({ promptTokens, answers: ceiling?.answers ?? 1 });
  }

  /**
   * Records the outcome. Only the first call counts: a failure that the first outcome leads to is not another outcome.
   */
  endedIn(outcome: RequestOutcome): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcome;
    this.endedAtMs = this.#parts.clock.now();
  }

  /**
   * Keeps the request open until `over`, also if the client leaves before: it may come back for its answer. `leaving` ends
   * it from now on.
   */
  staysUntil(over: Promise<unknown>, leaving: AbortController): void {
    this.#stays = over;
    this.leaving = leaving;
  }

  /**
   * Settles the request, once. A request without a recorded outcome was left by its client. `status` is the one that its
   * client got, or would have got.
   */
  close(status: number): void {
    const stays = this.#stays;
    this.#stays = undefined;
    if (stays === undefined) return this.#close(status);
    const close = (): void => this.#close(status);
    void stays.then(close, close);
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
    if (this.isOver) return;
    this.status = status;
    this.endedIn("client_closed");
    this.answer.end();
    if (this.#state === "asking") this.#state = "left";
    else this.#settle();
  }

  /** Returns what is booked of this request if its gateway is killed now; undefined while no machine works for it. */
  usedSoFar(): UsageRow | undefined {
    return usedNow(this, this.#parts);
  }

  /** Returns the record of this request for that case. */
  recordSoFar(): string | undefined {
    return recordNow(this, this.#parts);
  }

  /** The answer of this request, if it can be resumed. */
  get seated(): SeatedAnswer | undefined {
    const { tried, toldTokens, countedTokens } = this.answer;
    const job = tried.at(-1)?.offer.job;
    if (toldTokens === undefined || job === undefined) return undefined;
    return {
      job,
      seat: this.reservation?.seat ?? this.id,
      books: this.books,
      isResumed: countedTokens !== undefined,
    };
  }

  #settle(): void {
    this.#state = "settled";
    this.#facts = settle(this, this.#parts);
  }
}
