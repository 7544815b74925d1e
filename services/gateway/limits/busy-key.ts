import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { Admitted, Demand } from "./limits.ts";

/**
 * From this many requests of a key in one span, places ahead are worth asking for. The first requests ask for
 * themselves.
 */
const busyFrom = 4;
/** The most places of one key that wait to be used. */
const placesAheadMax = 64;
/** After the store lent nothing, because too little was free, it is not asked for places for this long. */
const scarceForMs = 1_000;

interface Place {
  readonly admission: Admitted;
  readonly tokens: number;
  readonly usableUntilMs: number;
}

/** One key with a quick succession of requests: how many came lately, and the places that wait for the next. */
export class BusyKey {
  readonly limits: KeyLimits;
  #places: Place[] = [];
  /** Requests in this span and in the one before, and the most tokens that one of them asked for. */
  #counted = 0;
  #countedBefore = 0;
  #tokens = 0;
  #tokensBefore = 0;
  /** The time from which places may be asked for again. `Infinity` while a call for places is under way. */
  #mayAskAtMs = -Infinity;

  constructor(limits: KeyLimits) {
    this.limits = limits;
  }

  /** The tokens to ask for with each place: the most that a recent request asked for. */
  get tokens(): number {
    return Math.max(this.#tokens, this.#tokensBefore);
  }

  isUnder({ requestsPerMinute, tokensPerMinute, concurrency, budget }: KeyLimits): boolean {
    const mine = this.limits;
    return (
      mine.requestsPerMinute === requestsPerMinute &&
      mine.tokensPerMinute === tokensPerMinute &&
      mine.concurrency === concurrency &&
      mine.budget?.tokens === budget?.tokens &&
      mine.budget?.per === budget?.per
    );
  }

  /** Counts one request in the current span. */
  count({ tokens }: Pick<Demand, "tokens">): void {
    this.#counted += 1;
    this.#tokens = Math.max(this.#tokens, tokens);
  }

  /** Removes and returns the oldest place that is large enough, or undefined if there is none. */
  take({ tokens }: Pick<Demand, "tokens">, nowMs: number): Admitted | undefined {
    const at = this.#places.findIndex((place) => place.tokens >= tokens && nowMs < place.usableUntilMs);
    return at < 0 ? undefined : this.#places.splice(at, 1)[0]?.admission;
  }

  /**
   * Returns how many places to ask for. The target is the number of recent requests; a refill begins once half of it is
   * used.
   */
  lacks(nowMs: number): number {
    if (nowMs < this.#mayAskAtMs) return 0;
    const wanted = Math.min(Math.max(this.#counted, this.#countedBefore), placesAheadMax);
    return wanted < busyFrom || this.#places.length * 2 > wanted ? 0 : wanted - this.#places.length;
  }

  /** Marks a call for places as under way. `lent` or `notLent` must follow. */
  asks(): void {
    this.#mayAskAtMs = Infinity;
  }

  lent(admissions: readonly Admitted[], of: { readonly tokens: number; readonly usableUntilMs: number }): void {
    this.#mayAskAtMs = -Infinity;
    for (const admission of admissions) this.#places.push({ admission, ...of });
  }

  notLent(nowMs: number): void {
    this.#mayAskAtMs = nowMs + scarceForMs;
  }

  /** Begins the next span. Returns the places that have waited too long. */
  nextSpan(nowMs: number): readonly Admitted[] {
    [this.#countedBefore, this.#counted] = [this.#counted, 0];
    [this.#tokensBefore, this.#tokens] = [this.#tokens, 0];
    const over = this.#places.filter(({ usableUntilMs }) => usableUntilMs <= nowMs);
    if (over.length > 0) this.#places = this.#places.filter(({ usableUntilMs }) => usableUntilMs > nowMs);
    return over.map(({ admission }) => admission);
  }

  get isIdle(): boolean {
    if (this.#mayAskAtMs === Infinity) return false;
    return this.#countedBefore === 0 && this.#counted === 0 && this.#places.length === 0;
  }

  /** Removes and returns all waiting places. */
  leave(): readonly Admitted[] {
    const left = this.#places.map(({ admission }) => admission);
    this.#places = [];
    return left;
  }
}
