import type { Timing } from "#shared/protocol/timing.ts";

interface Signs {
  /** When it last said that it lives; an older gateway never does. */
  leasedAtMs: number | undefined;
  /** Since when, and when last, the broker did not find it. */
  missing: { readonly sinceMs: number; lastMs: number } | undefined;
}

/** Since when this agent can hear gateways at all: its connection is up, and it did not stand still. */
export interface Hearing {
  readonly connected: boolean;
  readonly sinceMs: number;
}

/**
 * Whether the gateways live that wait for jobs here. One is gone when it gave no lease for `gatewayGoneAfterMs`, or when
 * the broker did not find it for as long; a moment of either is a broker that restarts, where agent and gateway come back
 * one after the other. What this agent could not hear is held against nobody, but whoever cannot be heard for
 * `cutOffAfterMs` has given up by then.
 */
export class GatewaySigns {
  readonly #timing: Timing;
  readonly #signs = new Map<string, Signs>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  leased(gateway: string, nowMs: number): void {
    const signs = this.#of(gateway);
    signs.leasedAtMs = nowMs;
    signs.missing = undefined;
  }

  /** The broker found nobody to give a beat to. */
  notFound(gateway: string, nowMs: number): void {
    const signs = this.#of(gateway);
    if (signs.missing === undefined) signs.missing = { sinceMs: nowMs, lastMs: nowMs };
    else signs.missing.lastMs = nowMs;
  }

  /**
   * Those of the gateways that are gone for good. Of the others that are not named, a lease is remembered for as long as it
   * says something: a gateway whose next job comes a moment later does not give it again.
   */
  gone(waiting: ReadonlySet<string>, nowMs: number, hearing: Hearing): string[] {
    for (const [gateway, { leasedAtMs = -Infinity }] of this.#signs) {
      const isOver = nowMs - leasedAtMs > this.#timing.gatewayGoneAfterMs;
      if (!waiting.has(gateway) && isOver) this.#signs.delete(gateway);
    }
    if (!hearing.connected) return nowMs - hearing.sinceMs > this.#timing.cutOffAfterMs ? [...waiting] : [];
    return [...waiting].filter((gateway) => this.#isGone(this.#of(gateway), nowMs, hearing));
  }

  #isGone(signs: Signs, nowMs: number, hearing: Hearing): boolean {
    const { gatewayGoneAfterMs, beatIntervalMs } = this.#timing;
    const { leasedAtMs, missing } = signs;
    if (leasedAtMs !== undefined && nowMs - Math.max(leasedAtMs, hearing.sinceMs) > gatewayGoneAfterMs) return true;
    if (missing === undefined) return false;
    const isBack = nowMs - missing.lastMs > beatIntervalMs * 1.5;
    if (isBack) signs.missing = undefined;
    return !isBack && missing.lastMs - missing.sinceMs >= gatewayGoneAfterMs;
  }

  #of(gateway: string): Signs {
    return this.#signs.getOrInsertComputed(gateway, () => ({ leasedAtMs: undefined, missing: undefined }));
  }
}
