import type { IncomingHttpHeaders } from "node:http";
import { Fault } from "#shared/fault/fault.ts";

/** The sum of the bodies that are arriving at a gateway; each counts with what it says it is, or may be at most. */
export const uploadBytesMax = 512 * 1024 * 1024;

/** The memory that bodies have while they arrive: many slow senders of large ones must not take all that there is. */
export class UploadRoom {
  readonly #bytesMax: number;
  #taken = 0;

  constructor(bytesMax = uploadBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** Makes room for a body, or refuses it. What is returned leaves it again; a second call does nothing. */
  enter(headers: IncomingHttpHeaders, bodyBytesMax: number): () => void {
    const bytes = Math.min(sizeOf(headers, bodyBytesMax), bodyBytesMax);
    if (this.#taken + bytes > this.#bytesMax) {
      throw new Fault("server_is_overloaded", {
        message: `The requests that are arriving at this gateway take ${this.#bytesMax} bytes already (uploadBytesMax).`,
      });
    }
    this.#taken += bytes;
    let left = false;
    return () => {
      if (!left) this.#taken -= bytes;
      left = true;
    };
  }
}

function sizeOf(headers: IncomingHttpHeaders, bodyBytesMax: number): number {
  if (headers["transfer-encoding"] !== undefined) return bodyBytesMax;
  return Number(headers["content-length"] ?? 0);
}
