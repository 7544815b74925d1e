import { RateBucket } from "#shared/process/rate-buckets.ts";

/**
 * WebSocket frames and commands in them that a machine may send at once, and then each second; fragments, pings and empty
 * frames count. An agent sends one frame in each turn of its event loop: 840 a second with 64 streams at full speed, and
 * 4,000 with a single one, with a command in each.
 */
export const framesPerSecondMax = 20_000;

const maskBytes = 4;

/** Bounds the frames and commands of a WebSocket client. `ws` reports no fragment and no empty frame, which cost as much. */
export class FrameRate extends RateBucket {
  /** Bytes of the current frame's head. */
  #head: number[] = [];
  /** Missing bytes of the current frame behind its head. */
  #rest = 0;

  constructor() {
    super({ atOnce: framesPerSecondMax, intervalMs: 1_000 / framesPerSecondMax });
  }

  /** Returns the number of frames whose head ends in this chunk. */
  count(chunk: Uint8Array): number {
    let frames = 0;
    for (let at = 0; at < chunk.byteLength;) {
      if (this.#rest === 0) {
        this.#head.push(chunk[at] ?? 0);
        at += 1;
        this.#rest = bytesBehind(this.#head);
        if (this.#rest === 0) continue;
        this.#head = [];
        frames += 1;
      }
      const skipped = Math.min(this.#rest, chunk.byteLength - at);
      this.#rest -= skipped;
      at += skipped;
    }
    return frames;
  }
}

/** Returns the size of a client's mask and payload behind this head of a frame, or 0 while the head is not whole. */
function bytesBehind([, second = -1, ...length]: readonly number[]): number {
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  if (second === -1 || length.length < lengthBytes) return 0;
  return maskBytes + (lengthBytes === 0 ? short : length.reduce((sum, byte) => sum * 256 + byte, 0));
}
