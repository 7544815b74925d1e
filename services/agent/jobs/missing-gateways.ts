import type { Timing } from "#shared/protocol/timing.ts";

/**
 * Gateways that the broker does not find: it says so for each beat that nobody takes. Only when that lasts is a gateway
 * gone; a moment of it is a broker that restarts, where agent and gateway come back one after the other.
 */
export class MissingGateways {
  readonly #timing: Timing;
  readonly #missing = new Map<string, { readonly sinceMs: number; lastMs: number }>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  notFound(gateway: string, nowMs: number): void {
    const missing = this.#missing.get(gateway);
    if (missing === undefined) this.#missing.set(gateway, { sinceMs: nowMs, lastMs: nowMs });
    else missing.lastMs = nowMs;
  }

  /** The gateways that are gone for good, each told once. */
  gone(nowMs: number): string[] {
    const gone: string[] = [];
    for (const [gateway, { sinceMs, lastMs }] of this.#missing) {
      const back = nowMs - lastMs > this.#timing.beatIntervalMs * 1.5;
      const lasting = lastMs - sinceMs >= this.#timing.gatewayGoneAfterMs;
      if (back || lasting) this.#missing.delete(gateway);
      if (lasting && !back) gone.push(gateway);
    }
    return gone;
  }
}
