import type { Clock } from "#shared/process/clock.ts";

/** Share of all requests that may be placed once more after a failure. */
const share = 0.1;
/**
 * `reserve` retries may follow each other, however few requests there were. `saved` limits the unused share that the
 * bucket holds.
 */
const reserve = 20;
const saved = 200;
/** Time in which a bucket below its reserve gains one retry. */
const refillMs = 1_000;

/**
 * Limits how often failed requests are placed elsewhere. A tenth of all requests may be, so that a failing fleet gets
 * no extra load because it fails. A few may be in any case, so that a small site survives the loss of a machine.
 */
export class RetryBudget {
  readonly #clock: Pick<Clock, "now">;
  #left = reserve;
  #refilledAtMs: number;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#refilledAtMs = clock.now();
  }

  /** Adds the share of a new request. */
  asked(): void {
    this.#left = Math.min(saved, this.#left + share);
  }

  /** Takes one retry. True if the budget held one. */
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
