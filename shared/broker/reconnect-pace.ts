/** Delay between attempts to reach a lost server. Two sides of a restart reconnect within this time of each other. */
const waitMs = 100;
const jitterMs = 150;
/** Bounds of the backoff after a refused credential: the server will likely refuse it again. */
const refusedWaitMsMin = 500;
const refusedWaitMsMax = 30_000;

/** Computes the delay before the next attempt to connect. Jitter keeps a fleet from reconnecting all at once. */
export class ReconnectPace {
  readonly #random: () => number;
  #refusals = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Counts a refused credential. Returns true for the first refusal since the last successful connect. */
  refused(): boolean {
    this.#refusals += 1;
    return this.#refusals === 1;
  }

  connected(): void {
    this.#refusals = 0;
  }

  nextMs(): number {
    if (this.#refusals === 0) return waitMs + this.#random() * jitterMs;
    const grown = refusedWaitMsMin * 2 ** Math.min(this.#refusals - 1, 10);
    return Math.min(grown, refusedWaitMsMax) * (0.5 + this.#random() / 2);
  }
}
