import { giveBack, replayBlockBytes, takeBlock } from "./replay-blocks.ts";

interface Kept {
  readonly sequence: number;
  readonly frame: Uint8Array;
  /** Where its bytes end in the answer. The terminal frame has none, and is never taken. */
  readonly endOffset: number;
}

/** Frames one behind the other, or a large one alone in its own bytes. */
interface Block {
  readonly first: number;
  readonly bytes: Uint8Array;
  readonly isLent: boolean;
  /** Where each ends, in these bytes and in the answer. */
  readonly ends: number[];
  readonly endOffsets: number[];
}

/**
 * The numbered frames of one job that its gateway may still ask for again: all that its client has not taken. How much
 * that can be is bounded by the credit that the gateway gives.
 *
 * They are copied together, into memory that goes from stream to stream: what is kept of each chunk on its own takes as
 * much again, and grows old.
 */
export class ReplayBuffer {
  #blocks: Block[] = [];
  /** The number of the first frame that is not taken. */
  #first = 1;

  keep({ sequence, frame, endOffset }: Kept): void {
    const last = this.#blocks.at(-1);
    const used = last?.ends.at(-1) ?? 0;
    if (last === undefined || used + frame.byteLength > last.bytes.byteLength) {
      this.#begin({ sequence, frame, endOffset });
      return;
    }
    last.bytes.set(frame, used);
    last.ends.push(used + frame.byteLength);
    last.endOffsets.push(endOffset);
  }

  /** The client has the answer up to this offset, and nobody will ask for that again. */
  taken(offset: number): void {
    for (let block = this.#blocks[0]; block !== undefined; block = this.#blocks[0]) {
      const left = block.endOffsets.findIndex((endOffset) => endOffset > offset);
      if (left >= 0) {
        this.#first = Math.max(this.#first, block.first + left);
        return;
      }
      this.#first = block.first + block.ends.length;
      this.#blocks.shift();
      release(block);
    }
  }

  /** Nobody will ask for anything again. */
  clear(): void {
    const blocks = this.#blocks;
    this.#blocks = [];
    for (const block of blocks) release(block);
  }

  /** All frames from this number on, or nothing when some of them are not kept any more. */
  from(sequence: number): readonly Uint8Array[] | undefined {
    if (this.#blocks.length === 0 || sequence < this.#first) return undefined;
    return this.#blocks.flatMap((block) => framesIn(block, sequence));
  }

  #begin({ sequence, frame, endOffset }: Kept): void {
    const isLent = frame.byteLength * 2 <= replayBlockBytes;
    const bytes = isLent ? takeBlock() : frame;
    if (isLent) bytes.set(frame);
    this.#blocks.push({ first: sequence, bytes, isLent, ends: [frame.byteLength], endOffsets: [endOffset] });
  }
}

/** Copies, since a block may hold another stream before they have left. */
function framesIn({ first, bytes, ends }: Block, from: number): Uint8Array[] {
  const skipped = Math.max(0, from - first);
  return ends.slice(skipped).map((end, place) => new Uint8Array(bytes.subarray(ends[skipped + place - 1] ?? 0, end)));
}

function release({ bytes, isLent }: Block): void {
  if (isLent) giveBack(bytes);
}
