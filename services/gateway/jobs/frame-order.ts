import type { Timing } from "#shared/protocol/timing.ts";

interface OrderOptions {
  readonly timing: Timing;
  /** Asks the machine for all frames from this sequence number on. */
  readonly ask: (from: number) => void;
  /** Called when a gap is filled, with the number of frames that filled it. */
  readonly filled: (frames: number) => void;
}

/** The order of the frames of one job: what came, what is missing, and when the machine was asked for it again. */
export class FrameOrder {
  readonly #options: OrderOptions;
  #next = 1;
  /** The highest sequence number that the machine is known to have sent. */
  #sent = 0;
  /** The time at which a gap was noticed, or the latest frame that fills it arrived. Undefined without a gap. */
  #missingSinceMs: number | undefined;
  #askedAtMs = -Infinity;
  #cameAgain = 0;

  constructor(options: OrderOptions) {
    this.#options = options;
  }

  /** The sequence number of the frame that comes next. */
  get next(): number {
    return this.#next;
  }

  get hasGap(): boolean {
    return this.#missingSinceMs !== undefined;
  }

  /** Takes a frame. True if it is the next one: frames that are asked for may come twice. */
  take(sequence: number, nowMs: number): boolean {
    if (sequence > this.#next) this.missing(sequence, nowMs);
    if (sequence !== this.#next) return false;
    this.#next += 1;
    if (this.#missingSinceMs === undefined) return true;
    this.#missingSinceMs = this.#next > this.#sent ? undefined : nowMs;
    this.#cameAgain += 1;
    if (this.#missingSinceMs === undefined) {
      this.#options.filled(this.#cameAgain);
      this.#cameAgain = 0;
    }
    return true;
  }

  /** Takes the number of the last frame that the machine has sent. */
  sent(sequence: number, nowMs: number): void {
    if (sequence >= this.#next) this.missing(sequence, nowMs);
  }

  missing(sequence: number, nowMs: number): void {
    this.#sent = Math.max(this.#sent, sequence);
    this.#missingSinceMs ??= nowMs;
    this.#askAgain(nowMs);
  }

  ask(nowMs: number): void {
    this.#askedAtMs = nowMs;
    this.#options.ask(this.#next);
  }

  /** Asks for missing frames again. True if they did not come while the connection was up. */
  isLost(nowMs: number, connectedSinceMs: number): boolean {
    if (this.#missingSinceMs === undefined) return false;
    if (nowMs - Math.max(this.#missingSinceMs, connectedSinceMs) > this.#options.timing.lostAfterMs) return true;
    this.#askAgain(nowMs);
    return false;
  }

  #askAgain(nowMs: number): void {
    if (nowMs - this.#askedAtMs >= this.#options.timing.parkRetryMs) this.ask(nowMs);
  }
}
