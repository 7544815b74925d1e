import type { Clock, Timer } from "../process/clock.ts";

/** Largest allowed difference from the clock of the key store. Beyond it the clock of the host counts as wrong. */
export const clockSkewMsMax = 5_000;

/**
 * A clock whose wall time is the time that the key store last reported. All hosts thereby agree on when a key expires.
 * The wall time is the host's own until the store has reported its time, and when the store is on this host. Between
 * two reports the monotonic clock counts on, so that setting the host's clock changes nothing.
 */
export class StoreClock implements Clock {
  readonly #host: Clock;
  #aheadOfNowMs: number | undefined;

  constructor(host: Clock) {
    this.#host = host;
  }

  now(): number {
    return this.#host.now();
  }

  wall(): number {
    return this.#aheadOfNowMs === undefined ? this.#host.wall() : Math.round(this.#host.now() + this.#aheadOfNowMs);
  }

  after(delayMs: number, run: () => void): Timer {
    return this.#host.after(delayMs, run);
  }

  every(intervalMs: number, run: () => void): Timer {
    return this.#host.every(intervalMs, run);
  }

  /**
   * Sets the wall time from an answer of the store to a request sent at `askedAtMs`. The store read its clock halfway
   * between the request and now.
   */
  learn(storeWallMs: number, askedAtMs: number): void {
    this.#aheadOfNowMs = storeWallMs - (askedAtMs + this.#host.now()) / 2;
  }

  /** Describes how wrong the host's clock is; undefined while the difference is at most `clockSkewMsMax`. */
  get fault(): string | undefined {
    const { skewMs } = this;
    if (Math.abs(skewMs) <= clockSkewMsMax) return undefined;
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    return `the clock of this host is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} that of Redis (clockSkewMsMax): keys expire by that of Redis; set both by NTP`;
  }

  /** Milliseconds by which the host's clock is ahead of the store's clock. */
  get skewMs(): number {
    return this.#host.wall() - this.wall();
  }
}
