import type { FollowedJob, JobEnder } from "./job-events.ts";
import { cutOffTooLong, machineDisconnected, machineOffline, tookTooLong } from "./machine-fault.ts";

/** The connection of this gateway to the broker, and since when it could hear its machines. */
export interface LineState {
  readonly connected: boolean;
  readonly sinceMs: number;
}

/** How a job's machine is waited for: until it accepts the job, and until it says more. */
export class Patience {
  readonly #job: FollowedJob;
  readonly #startedAtMs: number;
  #submissions = 1;
  /** True if the first publish got no 503 (no responders). A reconnect resets it. */
  #wentOut = true;
  /** True if a retry got a 503 although the first publish got none: the machine had the job when it died. */
  #diedWithIt = false;
  #resendAtMs: number;
  #probedAtMs = 0;

  constructor(job: FollowedJob, startedAtMs: number) {
    this.#job = job;
    this.#startedAtMs = startedAtMs;
    this.#resendAtMs = startedAtMs + job.timing.acceptWaitMs;
  }

  /** True if the machine may have begun a job that it did not accept, since the job was published once and not again. */
  get mayHaveBegun(): boolean {
    return this.#submissions === 1;
  }

  /** Publishes made while this gateway's own connection was down are lost. */
  reconnected(nowMs: number): void {
    this.#wentOut = false;
    this.#resendAtMs = nowMs;
  }

  /**
   * Takes the broker's 503 (no responders) for the machine's subject, and ends the job if that is final. A machine that got
   * the first publish and is gone at the retry had the job when it died. That is no refusal, since the job may have killed
   * the machine. An awaited machine was not heard since the gateway's own connection came up, and may still be
   * reconnecting.
   */
  nobodyThere(nowMs: number, { isAwaited }: { readonly isAwaited: boolean }, ender: JobEnder): void {
    const { timing } = this.#job;
    if (this.#submissions === 1) this.#wentOut = false;
    this.#diedWithIt = this.#wentOut;
    if (!isAwaited && this.#submissions > 1) this.#notReached(ender);
    else this.#resendAtMs = nowMs + (isAwaited ? timing.parkRetryMs : timing.retryAfterNobodyMs);
  }

  /**
   * Judges a job by the time. `heardAtMs` is when its machine was last heard of it, undefined until it accepts. Silence counts only while the gateway's own connection is up, and starts anew when the
   * connection comes back: a machine is not blamed for messages that the gateway could not receive.
   */
  judge(nowMs: number, { connected, sinceMs }: LineState, heardAtMs: number | undefined, ender: JobEnder): void {
    const { timing, remainingMs } = this.#job;
    if (nowMs - this.#startedAtMs > remainingMs + timing.lostAfterMs) ender.stop(tookTooLong(remainingMs));
    else if (!connected) this.#judgeCutOff(nowMs - sinceMs, ender);
    else if (heardAtMs === undefined) this.#awaitAcceptance(nowMs, Math.max(this.#startedAtMs, sinceMs), ender);
    else this.#judgeSilence(nowMs, nowMs - Math.max(heardAtMs, sinceMs), ender);
  }

  /** Ends the job of a gateway that was cut off for too long. */
  #judgeCutOff(cutOffMs: number, ender: JobEnder): void {
    const { timing, owner, isResumable, toldTokens } = this.#job;
    if (cutOffMs <= timing.cutOffAfterMs) return;
    // The client may be at another gateway by now, which counts from where the machine was told.
    if (isResumable && owner.hasLeft()) ender.moved(toldTokens);
    else ender.fail(cutOffTooLong());
  }

  #awaitAcceptance(nowMs: number, askedSinceMs: number, ender: JobEnder): void {
    const { timing, acceptWithinMs, resumes } = this.#job;
    if (nowMs - askedSinceMs > acceptWithinMs) {
      // The job of an answer that is resumed may still run for another attempt to resume it.
      if (resumes === undefined) this.#job.send({ kind: "cancel", reason: "gave_up" });
      this.#notReached(ender);
    } else if (nowMs >= this.#resendAtMs) {
      this.#submissions += 1;
      this.#resendAtMs = nowMs + timing.acceptWaitMs * 2;
      this.#job.send({ kind: "job" });
    }
  }

  #judgeSilence(nowMs: number, silentMs: number, ender: JobEnder): void {
    const { timing } = this.#job;
    if (silentMs > timing.lostAfterMs) {
      this.#job.notReached();
      ender.stop(machineDisconnected(`nothing was heard of the job for ${timing.lostAfterMs} ms`));
    } else if (silentMs > timing.probeAfterMs && nowMs - this.#probedAtMs >= timing.parkRetryMs) {
      this.#probedAtMs = nowMs;
      this.#job.send({ kind: "probe" });
    }
  }

  #notReached(ender: JobEnder): void {
    this.#job.notReached();
    ender.fail(machineOffline(this.#diedWithIt ? "machine" : undefined), { taken: this.#diedWithIt });
  }
}
