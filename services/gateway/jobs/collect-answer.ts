import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { JobListener } from "./job-listener.ts";

interface Waiting {
  /** Cancels the job, because the answer exceeds the limit. */
  readonly onTooLarge: (fault: Fault) => void;
  readonly onAccept: (machine: string) => void;
  /** Called with the number of bytes gathered so far. */
  readonly onGrow?: (bytes: number) => void;
}

/** Gathers an answer that is sent whole, up to `wholeAnswerBytesMax`. */
export class CollectedAnswer implements JobListener {
  readonly #waiting: Waiting;
  readonly #pieces: Uint8Array[] = [];
  #size = 0;
  #heldBytes = 0;

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
  }

  onAccept(machine: string): void {
    this.#waiting.onAccept(machine);
  }

  onData(bytes: Uint8Array): void {
    this.#size += bytes.byteLength;
    this.#pieces.push(bytes);
    this.onHold(0);
  }

  onHold(bytes: number): void {
    this.#heldBytes = bytes;
    const size = this.#size + this.#heldBytes;
    this.#waiting.onGrow?.(size);
    if (size <= limits.wholeAnswerBytesMax) return;
    this.#waiting.onTooLarge(
      new Fault("invalid_value", {
        message: `The answer is longer than ${limits.wholeAnswerBytesMax} bytes (wholeAnswerBytesMax); ask for it as a stream.`,
        param: "stream",
      }),
    );
  }

  bytes(): Buffer {
    const [only] = this.#pieces;
    if (only === undefined || this.#pieces.length > 1) return Buffer.concat(this.#pieces);
    return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
  }
}
