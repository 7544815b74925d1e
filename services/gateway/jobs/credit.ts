import { limits } from "#shared/protocol/limits.ts";
import { machineBrokeRules } from "./machine-fault.ts";

/** The bytes that a client has read, and those up to which its machine may send. */
export interface Granted {
  readonly taken: number;
  readonly limit: number;
}

/** The credit of one job: the machine may send so many bytes of records ahead of what its client has read. */
export class Credit {
  readonly #bytes: number;
  /** The highest offset that was ever granted, by credit or by a lease. The machine may send nothing beyond it. */
  #grantedBytes: number;
  #limit: number;
  #takenBytes = 0;
  #receivedBytes = 0;
  #heldBack = false;

  /** `elsewhereBytes` is what the machine may have been granted by another gateway. */
  constructor(bytes: number, elsewhereBytes: number) {
    this.#bytes = bytes;
    this.#limit = bytes;
    this.#grantedBytes = Math.max(bytes, elsewhereBytes);
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  get limit(): number {
    return this.#limit;
  }

  /** True if the client once read too slowly for the machine to go on. */
  get heldBack(): boolean {
    return this.#heldBack;
  }

  /** True if the machine needs more credit, once the client has read what came. */
  get isDue(): boolean {
    return this.#isStep(this.#receivedBytes);
  }

  /** Takes bytes of the machine. Throws the fault of a machine that sent more than it was granted. */
  received(bytes: number): void {
    this.#receivedBytes += bytes;
    if (this.#receivedBytes <= this.#grantedBytes) return;
    throw machineBrokeRules(
      `it sent ${this.#receivedBytes} bytes and was granted ${this.#grantedBytes} (creditBytes ${this.#bytes})`,
    );
  }

  /** Returns the credit to send now that the client has read another step of the answer. */
  next(unreadBytes: number): Granted | undefined {
    if (!this.isDue) return undefined;
    const taken = this.#clientTook(unreadBytes);
    if (!this.#isStep(taken)) {
      this.#heldBack = true;
      return undefined;
    }
    this.#grant(taken);
    this.#limit = taken + this.#bytes;
    return { taken, limit: this.#limit };
  }

  /**
   * Returns the bytes that the client has read, if the next lease should report them to the machine. A lease grants
   * credit only once a beat shows that credit: agents of older builds ignore it.
   */
  forLease(unreadBytes: number): number | undefined {
    const taken = this.#clientTook(unreadBytes);
    if (taken - this.#takenBytes < limits.takenStepBytes) return undefined;
    this.#grant(taken);
    return taken;
  }

  /** Takes the limit that a machine knows. Returns the newer one if the message with it was lost. */
  known(limit: number): Granted | undefined {
    // The machine learned from a lease how much the client has read.
    this.#limit = Math.max(this.#limit, Math.min(limit, this.#takenBytes + this.#bytes));
    return limit > 0 && limit < this.#limit ? { taken: this.#takenBytes, limit: this.#limit } : undefined;
  }

  #grant(taken: number): void {
    this.#takenBytes = taken;
    this.#grantedBytes = Math.max(this.#grantedBytes, taken + this.#bytes);
  }

  #isStep(takenBytes: number): boolean {
    return takenBytes + this.#bytes - this.#limit >= Math.min(this.#bytes / 2, limits.creditStepBytes);
  }

  /** Everything that came counts as read while the client has few rendered bytes unread. */
  #clientTook(unreadBytes: number): number {
    return unreadBytes <= limits.unreadBytesMax ? this.#receivedBytes : this.#takenBytes;
  }
}
