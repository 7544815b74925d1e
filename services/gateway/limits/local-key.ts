import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { KeyState } from "./judge-demand.ts";
import type { GrantedAlone, Hold, Settled } from "./limits.ts";
import { charge, requestRate, roundingUnits, tokenRate, unused, usedAt, type Rate, type Used } from "./rate.ts";

/**
 * One gateway's record of how much of a key's limits is used. Callers pass the limits each time, because limits change
 * while requests run.
 */
export class LocalKey {
  readonly #holds = new Map<string, Hold>();
  #reserved = 0;
  #requests = unused;
  #tokens = unused;
  /** The same two buckets as the shared store knows them: without grants made here while the store was unavailable. */
  #requestsTold = unused;
  #tokensTold = unused;
  /** The limits of the last charge. */
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
    this.#charge(nowMs, limits, { requests: 1, tokens: hold.tokens }, hold.kept);
  }

  /**
   * Returns what the store must charge to know all that is known here. A number is negative where something was given
   * back.
   */
  aloneAt(nowMs: number, limits: KeyLimits): GrantedAlone {
    const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits;
    const beyond = (all: Used, told: Used, rate: Rate): number =>
      usedAt(all, rate, nowMs).units - usedAt(told, rate, nowMs).units;
    return {
      requests: requests === undefined ? 0 : beyond(this.#requests, this.#requestsTold, requestRate(requests)),
      tokens: tokens === undefined ? 0 : beyond(this.#tokens, this.#tokensTold, tokenRate(tokens)),
    };
  }

  /** Records that the store has charged `granted`, or is being asked to. */
  tell(nowMs: number, limits: KeyLimits, granted: GrantedAlone): void {
    const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits;
    const told = (used: Used, cost: number, rate: Rate): Used => charge(usedAt(used, rate, nowMs), cost, rate);
    if (requests !== undefined) this.#requestsTold = told(this.#requestsTold, granted.requests, requestRate(requests));
    if (tokens !== undefined) this.#tokensTold = told(this.#tokensTold, granted.tokens, tokenRate(tokens));
  }

  /** Settles a hold once. A hold that is unknown here, or already settled, changes nothing. */
  settle(nowMs: number, limits: KeyLimits, { hold, ran, usedTokens }: Settled): void {
    const held = this.#holds.get(hold.seat);
    if (held === undefined) return;
    this.#holds.delete(hold.seat);
    if (this.#budget !== undefined) this.#budget.spent += usedTokens;
    this.#reserved -= held.budgetTokens;
    const cost = { requests: ran ? 0 : -1, tokens: (ran ? usedTokens : 0) - held.tokens };
    this.#charge(nowMs, limits, cost, held.kept);
  }

  /** Records the tokens used in a period up to now. Later settlements here are added to it. */
  learn(period: { readonly name: string; readonly endsAtMs: number }, spent: number): void {
    this.#budget = { period: period.name, endsAtMs: period.endsAtMs, spent };
  }

  spentIn(period: string): number | undefined {
    return this.#budget?.period === period ? this.#budget.spent : undefined;
  }

  /** True if a key without any record would have the same state. */
  isIdleAt(nowMs: number, wallMs: number): boolean {
    const budgetIsOver = this.#budget === undefined || this.#budget.endsAtMs <= wallMs;
    const { requestsUsed, tokensUsed } = this.stateAt(nowMs, this.#limits);
    return this.#holds.size === 0 && requestsUsed <= roundingUnits && tokensUsed <= roundingUnits && budgetIsOver;
  }

  #charge(nowMs: number, limits: KeyLimits, cost: GrantedAlone, kept: Hold["kept"]): void {
    const { requestsPerMinute, tokensPerMinute } = limits;
    this.#limits = limits;
    if (kept === "shared") this.tell(nowMs, limits, cost);
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
