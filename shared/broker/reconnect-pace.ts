/** How fast a lost server is looked for: two sides of a restart come back within this of each other. */
const waitMs = 100;
const jitterMs = 150;
/** A server that refuses a credential will do so again, so it is asked ever more rarely. */
const refusedWaitMsMin = 500;
const refusedWaitMsMax = 30_000;

/** How long to wait before the next attempt to connect. Jitter keeps a fleet from coming back all at once. */
export class ReconnectPace {
  readonly #random: () => number;
  #refusals = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Returns whether this is the first refusal since the connection last stood. */
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
