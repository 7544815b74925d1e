import type { Timing } from "#shared/protocol/timing.ts";

interface AcceptanceOptions {
  readonly timing: Timing;
  /** Time limit for the machine's first frame. */
  readonly withinMs: number;
  readonly nowMs: number;
}

/** A job that was published, and that its machine has not accepted yet: when it is sent again, and when given up. */
export class Acceptance {
  readonly #options: AcceptanceOptions;
  #submissions = 0;
  /** True if the first publish got no 503 (no responders). A reconnect resets it. */
  #wentOut = true;
  #diedWithIt = false;
  #resendAtMs: number;

  constructor(options: AcceptanceOptions) {
    this.#options = options;
    this.#resendAtMs = options.nowMs + options.timing.acceptWaitMs;
  }

  /** True if a retry got a 503 although the first publish got none: the machine had the job when it died. */
  get diedWithIt(): boolean {
    return this.#diedWithIt;
  }

  /** True if the machine may have begun the job, since it was published once and not again. */
  get mayHaveBegun(): boolean {
    return this.#submissions === 1;
  }

  submitted(): void {
    this.#submissions += 1;
  }

  /** Publishes made while this gateway's own connection was down are lost. */
  reconnected(nowMs: number): void {
    this.#wentOut = false;
    this.#resendAtMs = nowMs;
  }

  /**
   * Takes the broker's 503 (no responders) for the machine's subject. True if it is final. A machine that got the first
   * publish and is gone at the retry had the job when it died. That is no refusal, since the job may have killed the
   * machine. An awaited machine was not heard since the gateway's own connection came up, and may still be reconnecting.
   */
  isNobodyThere(nowMs: number, { isAwaited }: { readonly isAwaited: boolean }): boolean {
    const { timing } = this.#options;
    if (this.#submissions === 1) this.#wentOut = false;
    this.#diedWithIt = this.#wentOut;
    if (!isAwaited && this.#submissions > 1) return true;
    this.#resendAtMs = nowMs + (isAwaited ? timing.parkRetryMs : timing.retryAfterNobodyMs);
    return false;
  }

  /** Returns what is due for a job that could be accepted since that time. */
  due(nowMs: number, askedSinceMs: number): "give up" | "send again" | "wait" {
    const { timing, withinMs } = this.#options;
    if (nowMs - askedSinceMs > withinMs) return "give up";
    if (nowMs < this.#resendAtMs) return "wait";
    this.#resendAtMs = nowMs + timing.acceptWaitMs * 2;
    return "send again";
  }
}
