import { createHash } from "node:crypto";

/**
 * Joins a body that crosses the broker in parts. Parts are taken in order only: a duplicate part, or a part after a
 * lost one, changes nothing. The sender learns from the acknowledged offset where to continue.
 */
export class PartCollector {
  readonly body: Buffer;
  /** Bytes received so far: everything below this offset is here. */
  received = 0;
  readonly #sha256: string;
  readonly #hash = createHash("sha256");

  constructor(options: { bodyBytes: number; sha256: string }) {
    this.body = Buffer.allocUnsafe(options.bodyBytes);
    this.#sha256 = options.sha256;
  }

  /** Takes a part. The body may be read once it is `whole`. */
  add(offset: number, part: Uint8Array): "incomplete" | "whole" | "corrupt" {
    if (offset !== this.received || part.byteLength === 0) return "incomplete";
    if (offset + part.byteLength > this.body.byteLength) return "corrupt";
    this.body.set(part, offset);
    this.#hash.update(part);
    this.received += part.byteLength;
    if (this.received < this.body.byteLength) return "incomplete";
    return this.#hash.digest("hex") === this.#sha256 ? "whole" : "corrupt";
  }
}
