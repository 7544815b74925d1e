import { Fault } from "#shared/fault/fault.ts";
import type { AnswerBound } from "../jobs/answer-parts.ts";
import { limitOfUnit, judgingBudgets, tokensFor } from "../limits/budgets.ts";
import { growthTokens } from "../limits/judge-demand.ts";
import type { Reservation } from "../limits/limits.ts";
import type { Settlements } from "../limits/settlements.ts";
import type { ToldRequest } from "./settle.ts";

/** A request whose reservation may grow. */
interface GrowingRequest extends Pick<ToldRequest, "reservation" | "isResuming" | "demanded"> {
  readonly isOver: boolean;
  grew(reservation: Reservation): void;
}

/** True if an answer may become longer than what its request holds. */
export function mayGrow({
  reservation,
  isResuming,
  demanded,
}: Pick<ToldRequest, "reservation" | "isResuming" | "demanded">): boolean {
  if (reservation === undefined || demanded === undefined) return false;
  const { promptTokens, ceiling } = demanded;
  if (isResuming) return boundOf(reservation, promptTokens).tokens < Infinity;
  const { answers, answerTokens = Infinity } = ceiling;
  return answers > 0 && boundOf(reservation, promptTokens).tokens < promptTokens + answers * answerTokens;
}

/**
 * Lets the reservation of a request grow with its answer. The answer is left through `leaving` where one of its books
 * has nothing left for it. Undefined for an answer that no limit can end.
 */
export function allow(
  request: GrowingRequest,
  leaving: AbortController,
  settlements: Pick<Settlements, "grow">,
): GrowingReservation | undefined {
  const { reservation, demanded } = request;
  if (reservation === undefined || !mayGrow(request)) return undefined;
  return new GrowingReservation({
    request,
    reservation,
    promptTokens: demanded?.promptTokens ?? 0,
    leaving,
    settlements,
  });
}

interface GrowingOptions {
  readonly request: GrowingRequest;
  readonly reservation: Reservation;
  readonly promptTokens: number;
  readonly leaving: AbortController;
  readonly settlements: Pick<Settlements, "grow">;
}

/**
 * The reservation of a request that a model answers. Each time the answer has used it up, the reservation grows by what its books
 * have left. The answer goes on meanwhile, by no more than its machine may send ahead.
 */
class GrowingReservation implements AnswerBound {
  /** The limit at which the answer was left. */
  spent: string | undefined;
  upToTokens = 0;
  /** True while it is unknown if the answer may go on, so that its machine gets no more credit. */
  isGrowing = false;
  readonly #options: GrowingOptions;
  #reservation: Reservation;
  #usedTokens = 0;
  #isLast = false;

  constructor(options: GrowingOptions) {
    this.#options = options;
    this.#reservation = options.reservation;
    this.upToTokens = boundOf(options.reservation, options.promptTokens).tokens - options.promptTokens;
  }

  /** Takes the tokens of an answer that has more than `upToTokens`. */
  used(outputTokens: number): void {
    const { promptTokens, settlements } = this.#options;
    this.#usedTokens = promptTokens + outputTokens;
    if (this.isGrowing) return;
    if (this.#isLast) return this.#leave();
    const usedTokens = this.#usedTokens;
    const grown = settlements.grow({ reservation: this.#reservation, promptTokens, usedTokens });
    if (!(grown instanceof Promise)) return this.#grew(grown, usedTokens);
    this.isGrowing = true;
    void grown.then((reservation) => this.#grew(reservation, usedTokens));
  }

  /** The reservation was asked for more than so many tokens. */
  #grew(reservation: Reservation, usedTokens: number): void {
    const { request, promptTokens } = this.#options;
    const { tokens } = boundOf(reservation, promptTokens);
    this.#reservation = reservation;
    this.isGrowing = false;
    this.#isLast = tokens < usedTokens + growthTokens;
    this.upToTokens = tokens - promptTokens;
    request.grew(reservation);
    if (this.#usedTokens > tokens) this.used(this.#usedTokens - promptTokens);
  }

  #leave(): void {
    const { request, leaving, promptTokens } = this.#options;
    if (request.isOver || leaving.signal.aborted) return;
    this.spent = boundOf(this.#reservation, promptTokens).by;
    leaving.abort(new Fault("insufficient_quota", { message: "The key of this request has no tokens left." }));
  }
}

/** Returns the tokens that a request may use under its reservation, and the limit that is reached then. */
function boundOf({ held, rate }: Reservation, promptTokens: number): Bound {
  let least: Bound = { tokens: Infinity, by: "budget" };
  for (const { book, tokens, reserved } of held) {
    for (const { unit } of judgingBudgets(book.limits, rate)) {
      const lasts = unit === "money" ? tokensFor(reserved.money, promptTokens, rate) : reserved.tokens;
      if (lasts < least.tokens) least = { tokens: lasts, by: limitOfUnit[unit] };
    }
    if (book.limits.tokensPerMinute !== undefined && tokens < least.tokens) least = { tokens, by: "tokens" };
  }
  return least;
}

interface Bound {
  readonly tokens: number;
  readonly by: "tokens" | "budget" | "spend";
}
