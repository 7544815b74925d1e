import type { Credit } from "./credit.ts";
import type { FollowedJob } from "./job-events.ts";

/** The frames of one job that are missing, and when its machine was asked for them again. */
export class LostFrames {
  readonly #job: FollowedJob;
  readonly #credit: Credit;
  /** The highest sequence number that the machine is known to have sent. */
  #sent = 0;
  /** The time at which a gap was noticed, or the latest frame that fills it arrived. Undefined without a gap. */
  #missingSinceMs: number | undefined;
  #askedAtMs = -Infinity;
  #cameAgain = 0;

  constructor(job: FollowedJob, credit: Credit) {
    this.#job = job;
    this.#credit = credit;
  }

  get hasGap(): boolean {
    return this.#missingSinceMs !== undefined;
  }

  /** Takes the number of a frame. True if it is `next`: frames that are asked for may come twice. */
  take(sequence: number, next: number, nowMs: number): boolean {
    if (sequence > next) this.missing(sequence, next, nowMs);
    if (sequence !== next) return false;
    if (this.#missingSinceMs === undefined) return true;
    this.#cameAgain += 1;
    if (next < this.#sent) this.#missingSinceMs = nowMs;
    else {
      this.#missingSinceMs = undefined;
      this.#job.meter?.gapFilled(this.#cameAgain);
      this.#cameAgain = 0;
    }
    return true;
  }

  /** Notes that the machine has sent the frame of a number, and that `next` did not come. */
  missing(sequence: number, next: number, nowMs: number): void {
    this.#sent = Math.max(this.#sent, sequence);
    this.#missingSinceMs ??= nowMs;
    this.#askAgain(next, nowMs);
  }

  /** Asks the machine for all frames from `next` on. */
  ask(next: number, nowMs: number): void {
    this.#askedAtMs = nowMs;
    this.#job.meter?.replayAsked();
    this.#job.send({ kind: "attach", from: next, credit: this.#credit.limit });
  }

  /** Asks for missing frames again. True if they did not come while the connection was up. */
  isLost(next: number, nowMs: number, connectedSinceMs: number): boolean {
    if (this.#missingSinceMs === undefined) return false;
    if (nowMs - Math.max(this.#missingSinceMs, connectedSinceMs) > this.#job.timing.lostAfterMs) return true;
    this.#askAgain(next, nowMs);
    return false;
  }

  #askAgain(next: number, nowMs: number): void {
    if (nowMs - this.#askedAtMs >= this.#job.timing.parkRetryMs) this.ask(next, nowMs);
  }
}
