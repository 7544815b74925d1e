import { Fault } from "#shared/fault/fault.ts";
import type { AnswerBound } from "../jobs/answer-parts.ts";
import { growthTokens } from "../limits/judge-demand.ts";
import type { Hold } from "../limits/limits.ts";
import type { Settlements } from "../limits/settlements.ts";
import type { ToldRequest } from "./settle.ts";

/** A request whose reservation may grow. */
interface GrowingRequest extends Pick<ToldRequest, "hold" | "isResuming" | "demanded"> {
  readonly isOver: boolean;
  grew(hold: Hold): void;
}

/** The bound of an answer by what the limits of its key have left. */
export interface AnswerAllowance {
  /** Undefined for an answer that no limit can end. */
  readonly bound: AnswerBound | undefined;
  /** Returns the limit at which the answer was left. */
  readonly spent: () => string | undefined;
}

/** True if an answer may become longer than what its request holds. */
export function mayGrow({
  hold,
  isResuming,
  demanded,
}: Pick<ToldRequest, "hold" | "isResuming" | "demanded">): boolean {
  if (hold === undefined || demanded === undefined) return false;
  if (isResuming) return boundOf(hold).tokens < Infinity;
  const { promptTokens, ceiling } = demanded;
  const { answers, answerTokens = Infinity } = ceiling;
  return answers > 0 && boundOf(hold).tokens < promptTokens + answers * answerTokens;
}

/**
 * Lets the reservation of a request grow with its answer. The answer is left through `leaving` where the limits of its key
 * have nothing left for it.
 */
export function allow(request: GrowingRequest, leaving: AbortController, settlements: Settlements): AnswerAllowance {
  const { hold, demanded } = request;
  if (hold === undefined || !mayGrow(request)) return { bound: undefined, spent: () => undefined };
  let limit: string | undefined;
  const onSpent = (by: string): void => {
    if (request.isOver || leaving.signal.aborted) return;
    limit = by;
    leaving.abort(new Fault("insufficient_quota", { message: "The key of this request has no tokens left." }));
  };
  const holder = {
    hold,
    grew: (grown: typeof hold) => {
      holder.hold = grown;
      request.grew(grown);
    },
  };
  const { promptTokens = 0 } = demanded ?? {};
  return { bound: new GrowingHold({ holder, promptTokens, settlements, onSpent }), spent: () => limit };
}

/** The owner of a hold. */
interface Holder {
  readonly hold: Hold;
  /** Takes the hold as it has grown. */
  grew(hold: Hold): void;
}

interface GrowingOptions {
  readonly holder: Holder;
  readonly promptTokens: number;
  readonly settlements: Pick<Settlements, "grow">;
  /** Called when the limits of the key have nothing left for the answer, with the limit that is reached. */
  readonly onSpent: (by: "tokens" | "budget") => void;
}

/**
 * The hold of a request that a model answers. Each time the answer has used it up, the hold grows by what the limits of
 * the key have left. The answer goes on meanwhile, by no more than its machine may send ahead.
 */
export class GrowingHold {
  readonly #options: GrowingOptions;
  #usedTokens = 0;
  #isGrowing = false;
  #isLast = false;

  constructor(options: GrowingOptions) {
    this.#options = options;
  }

  /** True while it is unknown if the answer may go on, so that its machine gets no more credit. */
  get isGrowing(): boolean {
    return this.#isGrowing;
  }

  /** Takes the tokens of the answer so far. */
  used(outputTokens: number): void {
    const { holder, promptTokens, settlements } = this.#options;
    this.#usedTokens = promptTokens + outputTokens;
    const { tokens, by } = boundOf(holder.hold);
    if (this.#usedTokens <= tokens || this.#isGrowing) return;
    if (this.#isLast) {
      this.#options.onSpent(by);
      return;
    }
    const usedTokens = this.#usedTokens;
    const grow = (grown: Hold): void => {
      this.#isGrowing = false;
      this.#isLast = boundOf(grown).tokens < usedTokens + growthTokens;
      holder.grew(grown);
      this.used(this.#usedTokens - promptTokens);
    };
    const grown = settlements.grow({ hold: holder.hold, usedTokens });
    if (!(grown instanceof Promise)) return grow(grown);
    this.#isGrowing = true;
    void grown.then(grow);
  }
}

/** Returns the tokens that a request may use under its hold, and the limit that is reached then. */
export function boundOf({ limits, tokens, budgetTokens }: Hold): {
  readonly tokens: number;
  readonly by: "tokens" | "budget";
} {
  const ofMinute = limits.tokensPerMinute === undefined ? Infinity : tokens;
  const ofBudget = limits.budget === undefined ? Infinity : budgetTokens;
  return ofBudget <= ofMinute ? { tokens: ofBudget, by: "budget" } : { tokens: ofMinute, by: "tokens" };
}
