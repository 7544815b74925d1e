/**
 * WebSocket frames that a machine may send at once, and then each second; fragments, pings and empty frames count. An agent
 * sends one in each turn of its event loop: 840 a second with 64 streams at full speed, and 4,000 with a single one.
 */
export const framesPerSecondMax = 20_000;

const frameMs = 1_000 / framesPerSecondMax;
const maskBytes = 4;

/**
 * Bounds the frames in the bytes of a WebSocket client. Each costs the gateway as much as a message, and `ws` reports no
 * fragment and no empty frame.
 */
export class FrameRate {
  /** Time from which the client may again send as many frames at once as a new one. */
  #freeAtMs = 0;
  /** Bytes of the current frame's head that were read, and bytes of its length that are missing. */
  #headBytes = 0;
  #lengthBytes = 0;
  #length = 0;
  /** Missing bytes of the current frame behind its head: of its mask, which every client sends, and its payload. */
  #rest = 0;

  /** Counts the frames of a chunk, and returns false if they are too many. */
  admits(chunk: Uint8Array, nowMs: number): boolean {
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + this.count(chunk) * frameMs;
    return this.#freeAtMs - nowMs <= framesPerSecondMax * frameMs;
  }

  /** Returns the number of frames whose head ends in this chunk. */
  count(chunk: Uint8Array): number {
    let frames = 0;
    for (let at = 0; at < chunk.byteLength;) {
      if (this.#rest === 0) {
        this.#readHead(chunk[at] ?? 0);
        at += 1;
        if (this.#rest > 0) frames += 1;
      }
      const skipped = Math.min(this.#rest, chunk.byteLength - at);
      this.#rest -= skipped;
      at += skipped;
    }
    return frames;
  }

  #readHead(byte: number): void {
    this.#headBytes += 1;
    if (this.#headBytes === 1) return;
    if (this.#headBytes === 2) {
      const short = byte & 0x7f;
      this.#lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
      this.#length = this.#lengthBytes === 0 ? short : 0;
    } else {
      this.#length = this.#length * 256 + byte;
      this.#lengthBytes -= 1;
    }
    if (this.#lengthBytes > 0) return;
    this.#rest = maskBytes + this.#length;
    this.#headBytes = 0;
  }
}
