import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerWriter } from "./answer-parts.ts";

const nothing = new Uint8Array();

interface CollectOptions {
  readonly response: ServerResponse;
  readonly onAccept: (machine: string, model: string) => void;
  /** Called with the bytes that are held of it. */
  readonly onGrow: (bytes: number) => void;
  /** Cancels the job, because the answer exceeds the limit. */
  readonly onTooLarge: (fault: Fault) => void;
}

/** Gathers an answer that is sent whole, up to `wholeAnswerBytesMax`. */
export class CollectedAnswer implements AnswerWriter {
  readonly #options: CollectOptions;
  readonly #pieces: Uint8Array[] = [];
  #size = 0;

  constructor(options: CollectOptions) {
    this.#options = options;
  }

  hasLeft(): boolean {
    return this.#options.response.destroyed;
  }

  onAccept(machine: string, model: string): void {
    this.#options.onAccept(machine, model);
  }

  onData(bytes: Uint8Array): void {
    this.#size += bytes.byteLength;
    this.#pieces.push(bytes);
    this.onHold(0);
  }

  /** An answer that is sent whole has one machine to its client. */
  onContinue(): void {}

  onTick(): void {}

  unreadBytes(): undefined {
    return undefined;
  }

  onLast(bytes: Uint8Array): void {
    this.onData(bytes);
  }

  onHold(bytes: number): void {
    const { onGrow, onTooLarge } = this.#options;
    const size = this.#size + bytes;
    onGrow(size);
    if (size <= limits.wholeAnswerBytesMax) return;
    onTooLarge(
      new Fault("invalid_value", {
        message: `The answer is longer than ${limits.wholeAnswerBytesMax} bytes (wholeAnswerBytesMax); ask for less at once, or for a stream where the API has one.`,
        param: "stream",
      }),
    );
  }

  changeLast(change: (bytes: Uint8Array) => Uint8Array): void {
    this.#pieces.push(change(this.#pieces.pop() ?? nothing));
  }

  bytes(): Buffer {
    const [only] = this.#pieces;
    if (only === undefined || this.#pieces.length > 1) return Buffer.concat(this.#pieces);
    return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
  }
}
