/**
 * Bytes of a block, which holds some frames of a stream. A larger block would stay half empty; a smaller one costs as
 * much memory again in bookkeeping.
 */
const replayBlockBytes = 2 * 1024;

/** Bounds the blocks kept for reuse: as many as 2,000 streams give back in a second. */
const spareBlocksMax = 4 * 1024;

const spare: Uint8Array[] = [];

interface Kept {
  readonly sequence: number;
  readonly frame: Uint8Array;
  /** The answer's offset at which the frame's bytes end. `Infinity` for the terminal frame, which is never taken. */
  readonly endOffset: number;
}

/** Consecutive frames, or one large frame alone in its own bytes. */
interface Block {
  readonly first: number;
  readonly bytes: Uint8Array;
  readonly isLent: boolean;
  /** Where each frame ends: `ends` in `bytes`, `endOffsets` in the answer. */
  readonly ends: number[];
  readonly endOffsets: number[];
}

/**
 * Keeps the numbered frames of one job that its gateway may still ask for again: all that its client has not read. The
 * gateway's credit bounds their size.
 *
 * Frames are copied together into blocks that streams reuse. Keeping each chunk on its own would take twice the memory
 * and let it grow old in V8's heap.
 */
export class ReplayBuffer {
  #blocks: Block[] = [];
  /** The number of the first frame that the client has not read. */
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

  /** Drops the frames up to this offset: the client has read them, so no gateway asks for them again. */
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

  /** Drops all frames: no gateway asks for them again. */
  clear(): void {
    const blocks = this.#blocks;
    this.#blocks = [];
    for (const block of blocks) release(block);
  }

  /** The oldest number that is kept. Undefined when no frame is kept. */
  get first(): number | undefined {
    return this.#blocks.length === 0 ? undefined : this.#first;
  }

  /** Returns a copy of this frame: its block may hold another stream before the frame has left. */
  frame(sequence: number): Uint8Array | undefined {
    const block = this.#blocks.findLast(({ first }) => first <= sequence);
    const place = sequence - (block?.first ?? 0);
    if (block === undefined || sequence < this.#first || place >= block.ends.length) return undefined;
    return new Uint8Array(block.bytes.subarray(block.ends[place - 1] ?? 0, block.ends[place]));
  }

  #begin({ sequence, frame, endOffset }: Kept): void {
    const isLent = frame.byteLength * 2 <= replayBlockBytes;
    const bytes = isLent ? takeBlock() : frame;
    if (isLent) bytes.set(frame);
    this.#blocks.push({ first: sequence, bytes, isLent, ends: [frame.byteLength], endOffsets: [endOffset] });
  }
}

function release({ bytes, isLent }: Block): void {
  if (isLent) giveBack(bytes);
}

/**
 * Returns a block for frames that a stream keeps. Each stream needs new blocks several times a second, and holds them
 * no longer than that. As garbage they would be old by then: tens of megabytes would wait until V8 collects the whole
 * heap.
 */
function takeBlock(): Uint8Array {
  return spare.pop() ?? new Uint8Array(replayBlockBytes);
}

/** Takes a block back for reuse. The caller keeps no reference to it: the next taker overwrites it. */
function giveBack(block: Uint8Array): void {
  if (spare.length < spareBlocksMax) spare.push(block);
}
