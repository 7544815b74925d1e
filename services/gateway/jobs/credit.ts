import { limits } from "#shared/protocol/limits.ts";
import type { FollowedJob } from "./job-events.ts";
import { machineBrokeRules } from "./machine-fault.ts";

/**
 * The credit of one job: the machine may send so many bytes of records ahead of what its client has read. `receivedBytes` are
 * those that came, as its follower counts them.
 */
export class Credit {
  limit: number;
  /** True if the client once read too slowly for the machine to go on. */
  heldBack = false;
  readonly #job: FollowedJob;
  /** The highest offset that was ever granted, by credit or by a lease. The machine may send nothing beyond it. */
  #grantedBytes: number;
  #takenBytes = 0;

  constructor(job: FollowedJob) {
    this.#job = job;
    // Another gateway may have granted more of an answer that can be resumed.
    this.#grantedBytes = Math.max(job.creditBytes, job.isResumable ? limits.resumableBytes : 0);
    this.limit = job.creditBytes;
  }

  /** Throws the fault of a machine that sent more than it was granted. */
  assertGranted(receivedBytes: number): void {
    if (receivedBytes <= this.#grantedBytes) return;
    throw machineBrokeRules(
      `it sent ${receivedBytes} bytes and was granted ${this.#grantedBytes} (creditBytes ${this.#job.creditBytes})`,
    );
  }

  /** True if the machine needs more credit, once the client has read what came. */
  isDue(receivedBytes: number): boolean {
    return receivedBytes + this.#job.creditBytes - this.limit >= this.#job.creditStepBytes;
  }

  /** Sends credit if it is due and the client has read another step of the answer. */
  give(receivedBytes: number): void {
    if (!this.isDue(receivedBytes)) return;
    const taken = this.#clientTook(receivedBytes);
    if (!this.isDue(taken)) {
      this.heldBack = true;
      return;
    }
    this.#grant(taken);
    this.limit = taken + this.#job.creditBytes;
    this.#job.send({ kind: "credit", taken, limit: this.limit });
  }

  /**
   * Returns the bytes that the client has read, if the next lease should report them to the machine. A lease grants
   * credit only once a beat shows that credit: agents of older builds ignore it.
   */
  forLease(receivedBytes: number): number | undefined {
    const taken = this.#clientTook(receivedBytes);
    if (taken - this.#takenBytes < limits.takenStepBytes) return undefined;
    this.#grant(taken);
    return taken;
  }

  /** Takes the limit that a machine knows. Sends the newer one again if the message with it was lost. */
  known(limit: number): void {
    // The machine learned from a lease how much the client has read.
    this.limit = Math.max(this.limit, Math.min(limit, this.#takenBytes + this.#job.creditBytes));
    if (limit > 0 && limit < this.limit) this.#job.send({ kind: "credit", taken: this.#takenBytes, limit: this.limit });
  }

  #grant(taken: number): void {
    this.#takenBytes = taken;
    this.#grantedBytes = Math.max(this.#grantedBytes, taken + this.#job.creditBytes);
  }

  /** Everything that came counts as read while the client has few rendered bytes unread. */
  #clientTook(receivedBytes: number): number {
    const unreadBytes = this.#job.owner.unreadBytes() ?? 0;
    return unreadBytes <= limits.unreadBytesMax ? receivedBytes : this.#takenBytes;
  }
}
