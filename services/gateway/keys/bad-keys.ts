import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import { networkOf } from "../http/request-state.ts";

/** Wrong keys that one address may send in a minute before its unknown keys go through the lane. */
export const badKeysPerMinuteMax = 300;
export const addressesMax = 10_000;

/** Limits of the lane: keys that are looked up at once, keys that wait for their turn, and the longest wait. */
export const laneAskingMax = 8;
export const laneWaitingMax = 64;
export const laneWaitMsMax = 1_000;

/**
 * Counts the wrong keys of each address, so that guessing costs the store little. Unknown keys from an address with too
 * many go through one lane. The lane delays no other client, and a valid key in it is still found. An address leaves
 * the lane bit by bit when it sends no more wrong keys.
 */
export class BadKeys {
  readonly #clock: Pick<Clock, "now" | "after">;
  readonly #rates: RateBuckets;
  #asking = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Pick<Clock, "now" | "after">) {
    this.#clock = clock;
    this.#rates = new RateBuckets(clock, { ...perMinute(badKeysPerMinuteMax), max: addressesMax });
  }

  /**
   * Looks up a key, or a join line, that is not known here. The outcome `invalid` counts as a wrong key. Throws
   * `auth_unavailable` when the lane has no place in time.
   */
  async ask<Verdict extends { readonly outcome: string }>(
    address: string,
    ask: () => Promise<Verdict>,
  ): Promise<Verdict> {
    const leave = this.hasTooMany(address) ? await this.#enterLane() : undefined;
    try {
      const verdict = await ask();
      if (verdict.outcome === "invalid") this.note(address);
      return verdict;
    } finally {
      leave?.();
    }
  }

  /** Like `ask`, for a proof that throws `key_invalid` for a wrong key. */
  async askOrThrow<Answer>(address: string, ask: () => Promise<Answer>): Promise<Answer> {
    const verdict = await this.ask(address, async () => {
      try {
        return { outcome: "valid", answer: await ask() } as const;
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== "key_invalid") throw error;
        return { outcome: "invalid", error } as const;
      }
    });
    if (verdict.outcome === "invalid") throw verdict.error;
    return verdict.answer;
  }

  hasTooMany(address: string): boolean {
    return this.#rates.waitMs(networkOf(address)) > 0;
  }

  note(address: string): void {
    this.#rates.add(networkOf(address));
  }

  async #enterLane(): Promise<() => void> {
    const leave = (): void => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#asking -= 1;
      else next();
    };
    if (this.#asking < laneAskingMax) {
      this.#asking += 1;
      return leave;
    }
    if (this.#waiting.length >= laneWaitingMax) throw laneIsFull();
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn.resolve);
    const late = this.#clock.after(laneWaitMsMax, () => {
      this.#waiting.splice(this.#waiting.indexOf(turn.resolve), 1);
      turn.reject(laneIsFull());
    });
    await turn.promise.finally(() => late.cancel());
    return leave;
  }
}

/** Returns `auth_unavailable`, never a 401 or a 429: the key may be a good one. */
function laneIsFull(): Fault {
  return new Fault("auth_unavailable", {
    message: `Too many wrong keys came from this address (badKeysPerMinuteMax), and this key would wait behind ${laneWaitingMax} others or for more than ${laneWaitMsMax} ms (laneWaitingMax, laneWaitMsMax). Send the request again in a moment.`,
    internal: "the lane for unknown keys is full",
  });
}
