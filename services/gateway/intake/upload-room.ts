import type { IncomingHttpHeaders } from "node:http";
import { Fault } from "#shared/fault/fault.ts";

/** The sum of the bodies that are arriving at a gateway; each counts with what it says it is, or may be at most. */
export const uploadBytesMax = 512 * 1024 * 1024;

/** How many parts of it one sender may take, so that nobody keeps out everybody else. */
const partsPerSender = 4;

/** The memory that bodies have while they arrive: many slow senders of large ones must not take all that there is. */
export class UploadRoom {
  readonly #bytesMax: number;
  readonly #takenBy = new Map<string, number>();
  #taken = 0;

  constructor(bytesMax = uploadBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** Makes room for a body, or refuses it. What is returned leaves it again; a second call does nothing. */
  enter(body: {
    readonly headers: IncomingHttpHeaders;
    readonly bodyBytesMax: number;
    /** Its sender: a key, or an address. */
    readonly whose: string;
  }): () => void {
    const { headers, bodyBytesMax, whose } = body;
    const bytes = Math.min(sizeOf(headers, bodyBytesMax), bodyBytesMax);
    if (bytes === 0) return () => undefined;
    const perSenderMax = Math.max(this.#bytesMax / partsPerSender, bodyBytesMax);
    if (this.#taken + bytes > this.#bytesMax || (this.#takenBy.get(whose) ?? 0) + bytes > perSenderMax) {
      throw new Fault("server_is_overloaded", {
        message: `The requests that are arriving here take ${this.#bytesMax} bytes already, or this sender's a quarter of them (uploadBytesMax).`,
      });
    }
    this.#take(whose, bytes);
    let left = false;
    return () => {
      if (!left) this.#take(whose, -bytes);
      left = true;
    };
  }

  #take(whose: string, bytes: number): void {
    this.#taken += bytes;
    const taken = (this.#takenBy.get(whose) ?? 0) + bytes;
    if (taken === 0) this.#takenBy.delete(whose);
    else this.#takenBy.set(whose, taken);
  }
}

function sizeOf(headers: IncomingHttpHeaders, bodyBytesMax: number): number {
  if (headers["transfer-encoding"] !== undefined) return bodyBytesMax;
  return Number(headers["content-length"] ?? 0);
}
