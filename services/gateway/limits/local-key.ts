import type { KeyLimits } from "#shared/keys/key-limits.ts";
import { Passing } from "#shared/process/passing.ts";
import type { KeyState } from "./judge-demand.ts";
import type { Hold, Settled } from "./limits.ts";
import { charge, requestRate, roundingUnits, tokenRate, unused, usedAt } from "./rate.ts";

/** What one gateway knows of a key's limits. The limits are told each time, for they change while requests run. */
export class LocalKey {
  readonly #holds = new Passing<Hold>();
  #reserved = 0;
  #requests = unused;
  #tokens = unused;
  /** Those that it was last charged under. */
  #limits: KeyLimits = {};
  #budget: { readonly period: string; readonly endsAtMs: number; spent: number } | undefined;

  stateAt(nowMs: number, limits: KeyLimits): Omit<KeyState, "spent"> {
    const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits;
    return {
      requestsUsed: requests === undefined ? 0 : usedAt(this.#requests, requestRate(requests), nowMs).units,
      tokensUsed: tokens === undefined ? 0 : usedAt(this.#tokens, tokenRate(tokens), nowMs).units,
      seatsTaken: this.#holds.size,
      reserved: this.#reserved,
    };
  }

  take(nowMs: number, limits: KeyLimits, hold: Hold): void {
    this.#holds.set(hold.seat, hold);
    this.#reserved += hold.budgetTokens;
    this.#charge(nowMs, limits, { requests: 1, tokens: hold.tokens });
  }

  /** A hold that is not known here, or was settled before, changes nothing. */
  settle(nowMs: number, limits: KeyLimits, { hold, ran, usedTokens }: Settled): void {
    const held = this.#holds.get(hold.seat);
    if (held === undefined) return;
    this.#holds.delete(hold.seat);
    if (this.#budget !== undefined) this.#budget.spent += usedTokens;
    this.#reserved -= held.budgetTokens;
    this.#charge(nowMs, limits, {
      requests: ran ? 0 : -1,
      tokens: (ran ? usedTokens : 0) - held.tokens,
    });
  }

  /** What was used in a period up to now; what ends here from now on is added by itself. */
  learn(period: { readonly name: string; readonly endsAtMs: number }, spent: number): void {
    this.#budget = { period: period.name, endsAtMs: period.endsAtMs, spent };
  }

  spentIn(period: string): number | undefined {
    return this.#budget?.period === period ? this.#budget.spent : undefined;
  }

  /** Whether a key of which nothing is known would stand the same. */
  isIdleAt(nowMs: number, wallMs: number): boolean {
    const budgetIsOver = this.#budget === undefined || this.#budget.endsAtMs <= wallMs;
    const { requestsUsed, tokensUsed } = this.stateAt(nowMs, this.#limits);
    return this.#holds.size === 0 && requestsUsed <= roundingUnits && tokensUsed <= roundingUnits && budgetIsOver;
  }

  #charge(nowMs: number, limits: KeyLimits, cost: { readonly requests: number; readonly tokens: number }): void {
    const { requestsPerMinute, tokensPerMinute } = limits;
    this.#limits = limits;
    if (requestsPerMinute !== undefined) {
      const rate = requestRate(requestsPerMinute);
      this.#requests = charge(usedAt(this.#requests, rate, nowMs), cost.requests, rate);
    }
    if (tokensPerMinute !== undefined) {
      const rate = tokenRate(tokensPerMinute);
      this.#tokens = charge(usedAt(this.#tokens, rate, nowMs), cost.tokens, rate);
    }
  }
}
