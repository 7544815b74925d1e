import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";

interface PartsOptions {
  readonly body: Uint8Array;
  readonly timing: Timing;
  readonly send: (offset: number, part: Uint8Array) => void;
}

/**
 * Sends a body that is larger than one message. A window of parts is under way, and each acknowledgement moves it on.
 * After `partRepeatMs` without one, the parts after the last acknowledged byte are sent again.
 */
export class PartSender {
  readonly #options: PartsOptions;
  #acknowledged = 0;
  #sent = 0;
  #movedAtMs = 0;

  constructor(options: PartsOptions) {
    this.#options = options;
  }

  start(nowMs: number): void {
    this.#movedAtMs = nowMs;
    this.#fill();
  }

  /** True if the machine acknowledged the whole body. */
  get complete(): boolean {
    return this.#acknowledged === this.#options.body.byteLength;
  }

  acknowledge(received: number, nowMs: number): void {
    if (received <= this.#acknowledged || received > this.#options.body.byteLength) return;
    this.#acknowledged = received;
    this.#sent = Math.max(this.#sent, received);
    this.#movedAtMs = nowMs;
    this.#fill();
  }

  tick(nowMs: number): void {
    if (this.complete) return;
    if (nowMs - this.#movedAtMs >= this.#options.timing.partRepeatMs) this.repeat(nowMs);
  }

  /** Sends all unacknowledged parts again, as if they were lost. */
  repeat(nowMs: number): void {
    this.#sent = this.#acknowledged;
    this.start(nowMs);
  }

  #fill(): void {
    const { body, send } = this.#options;
    while (this.#sent < body.byteLength && this.#sent - this.#acknowledged < limits.partWindowBytes) {
      const part = body.subarray(this.#sent, this.#sent + limits.partBytes);
      send(this.#sent, part);
      this.#sent += part.byteLength;
    }
  }
}
