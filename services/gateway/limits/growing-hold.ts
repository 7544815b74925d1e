import { growthTokens } from "./judge-demand.ts";
import type { Hold } from "./limits.ts";
import type { Settlements } from "./settlements.ts";

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
