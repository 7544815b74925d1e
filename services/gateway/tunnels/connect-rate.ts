import type { Clock } from "#shared/process/clock.ts";
import { connectsPerMinuteMax } from "#shared/protocol/pairing.ts";

const minuteMs = 60_000;
const intervalMs = minuteMs / connectsPerMinuteMax;

/**
 * Bounds how often a machine connects to this gateway. Each proof and each connection to the broker costs work, and a proxy that cuts every WebSocket has an agent come back many times a second. Only proven
 * machines are counted, so that nobody uses up the rate of another machine.
 */
export class ConnectRate {
  readonly #clock: Pick<Clock, "now">;
  /** Time at which the count of each public key is back to nothing. The key that connected last is at the end. */
  readonly #freeAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Counts a connect and returns 0, or returns the milliseconds after which this key may connect again. */
  admit(publicKey: string): number {
    const nowMs = this.#clock.now();
    const freeAtMs = Math.max(this.#freeAtMs.get(publicKey) ?? nowMs, nowMs) + intervalMs;
    const waitMs = freeAtMs - minuteMs - nowMs;
    if (waitMs > 0) return Math.ceil(waitMs);
    this.#freeFrom(publicKey, freeAtMs);
    for (const [key, freeAt] of this.#freeAtMs) {
      if (freeAt > nowMs) break;
      this.#freeAtMs.delete(key);
    }
    return 0;
  }

  /** Uses up the connects of a key, so that its next one is `intervalMs` away. */
  exhaust(publicKey: string): void {
    this.#freeFrom(publicKey, this.#clock.now() + minuteMs);
  }

  #freeFrom(publicKey: string, freeAtMs: number): void {
    this.#freeAtMs.delete(publicKey);
    this.#freeAtMs.set(publicKey, freeAtMs);
  }
}
