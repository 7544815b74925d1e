import type { Clock } from "#shared/process/clock.ts";

/** Of all requests, so many may be placed once more after a failure. */
const share = 0.1;
/** So many may be in a row, however few requests there were, and the bucket holds no more than this of unused share. */
const reserve = 20;
const saved = 200;
/** How long a bucket that holds less than its reserve takes to gain one. */
const refillMs = 1_000;

/**
 * How often failed requests may be placed elsewhere: a tenth of all requests, so that a fleet that fails is not asked for
 * more because it fails, and a few in any case, so that a small site survives a machine.
 */
export class RetryBudget {
  readonly #clock: Pick<Clock, "now">;
  #left = reserve;
  #refilledAtMs: number;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#refilledAtMs = clock.now();
  }

  /** A request came. */
  asked(): void {
    this.#left = Math.min(saved, this.#left + share);
  }

  /** Whether one more request may be placed once more. */
  take(): boolean {
    const nowMs = this.#clock.now();
    const gained = (nowMs - this.#refilledAtMs) / refillMs;
    this.#refilledAtMs = nowMs;
    if (this.#left < reserve) this.#left = Math.min(reserve, this.#left + gained);
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
