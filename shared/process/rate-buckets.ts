import { LRUCache } from "lru-cache";
import type { Clock } from "./clock.ts";

/** A rate: so many at once, and then one in each interval. */
interface RateTerms {
  readonly atOnce: number;
  readonly intervalMs: number;
}

/** Returns the terms of a rate per minute, all of which may come at once. */
export function perMinute(count: number): RateTerms {
  return { atOnce: count, intervalMs: 60_000 / count };
}

/** Bounds the rate of one sender. */
export class RateBucket {
  readonly #terms: RateTerms;
  /** Time from which the sender may again send as many at once as a new one. */
  #emptyAtMs = 0;

  constructor(terms: RateTerms) {
    this.#terms = terms;
  }

  /** Returns the time until so many more are within the rate; zero means now. */
  waitMs(nowMs: number, count = 1): number {
    const { atOnce, intervalMs } = this.#terms;
    return Math.max(0, Math.ceil(Math.max(this.#emptyAtMs, nowMs) - nowMs + (count - atOnce) * intervalMs));
  }

  /** Counts what was sent, also what exceeds the rate. */
  add(nowMs: number, count = 1): void {
    this.#emptyAtMs = Math.max(this.#emptyAtMs, nowMs) + count * this.#terms.intervalMs;
  }

  /** Counts what is within the rate and returns 0, or returns the time after which it is. */
  take(nowMs: number, count = 1): number {
    const waitMs = this.waitMs(nowMs, count);
    if (waitMs === 0) this.add(nowMs, count);
    return waitMs;
  }

  /** Uses up the rate, so that the next one is an interval away. */
  fill(nowMs: number): void {
    this.#emptyAtMs = nowMs + this.#terms.atOnce * this.#terms.intervalMs;
  }
}

/** Bounds the rate of each sender by this process's clock. Beyond `max` senders, forgets those that sent least recently. */
export class RateBuckets {
  readonly #clock: Pick<Clock, "now">;
  readonly #buckets: LRUCache<string, RateBucket>;

  constructor(clock: Pick<Clock, "now">, { max = 10_000, ...terms }: RateTerms & { readonly max?: number }) {
    this.#clock = clock;
    this.#buckets = new LRUCache({ max, memoMethod: () => new RateBucket(terms) });
  }

  /** Returns the time after which the sender is within its rate again; zero means now. */
  waitMs(sender: string): number {
    return this.#buckets.peek(sender)?.waitMs(this.#clock.now()) ?? 0;
  }

  /** Counts one of the sender, also one that exceeds its rate. */
  add(sender: string): void {
    this.#buckets.memo(sender).add(this.#clock.now());
  }

  /** Counts one of the sender and returns 0, or returns the time after which it is within the rate. */
  take(sender: string): number {
    return this.#buckets.memo(sender).take(this.#clock.now());
  }

  /** Uses up the sender's rate, so that its next one is an interval away. */
  fill(sender: string): void {
    this.#buckets.memo(sender).fill(this.#clock.now());
  }
}
