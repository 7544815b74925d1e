import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { Admitted, Demand } from "./limits.ts";

/** So many requests of a key in one span make it worth asking ahead: the first of them ask for themselves. */
const busyFrom = 4;
/** Places of one key that wait at most. */
const placesAheadMax = 64;
/** So long nothing is asked for where too little was free. */
const scarceForMs = 1_000;

interface Place {
  readonly admission: Admitted;
  readonly tokens: number;
  readonly usableUntilMs: number;
}

/** One key whose requests come one after the other: how many of late, and the places that wait for the next. */
export class BusyKey {
  readonly limits: KeyLimits;
  #places: Place[] = [];
  /** Requests in this span and in the one before, and the most tokens that one of them asked for. */
  #counted = 0;
  #countedBefore = 0;
  #tokens = 0;
  #tokensBefore = 0;
  /** When places may be asked for again; never while they are being asked for. */
  #mayAskAtMs = -Infinity;

  constructor(limits: KeyLimits) {
    this.limits = limits;
  }

  /** What each place is to be asked for with: as much as any request of late. */
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

  /** A request has come. */
  count({ tokens }: Pick<Demand, "tokens">): void {
    this.#counted += 1;
    this.#tokens = Math.max(this.#tokens, tokens);
  }

  /** The place that has waited longest of those that are large enough, if there is one. */
  take({ tokens }: Pick<Demand, "tokens">, nowMs: number): Admitted | undefined {
    const at = this.#places.findIndex((place) => place.tokens >= tokens && nowMs < place.usableUntilMs);
    return at < 0 ? undefined : this.#places.splice(at, 1)[0]?.admission;
  }

  /** How many places should be asked for: for as many requests as came of late, once half of their places are gone. */
  lacks(nowMs: number): number {
    if (nowMs < this.#mayAskAtMs) return 0;
    const wanted = Math.min(Math.max(this.#counted, this.#countedBefore), placesAheadMax);
    return wanted < busyFrom || this.#places.length * 2 > wanted ? 0 : wanted - this.#places.length;
  }

  /** Places are asked for now; the answer is to be told. */
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

  /** The next span begins. Returns what waited too long. */
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

  /** All that wait, which are not its own any more. */
  leave(): readonly Admitted[] {
    const left = this.#places.map(({ admission }) => admission);
    this.#places = [];
    return left;
  }
}
