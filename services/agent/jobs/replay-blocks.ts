/**
 * Bytes of a block, which holds some frames of a stream. A larger block would stay half empty; a smaller one costs as
 * much memory again in bookkeeping.
 */
export const replayBlockBytes = 2 * 1024;

/** Bounds the blocks kept for reuse: as many as 2,000 streams give back in a second. */
const spareBlocksMax = 4 * 1024;

const spare: Uint8Array[] = [];

/**
 * Returns a block for frames that a stream keeps. Each stream needs new blocks several times a second, and holds them
 * no longer than that. As garbage they would be old by then: tens of megabytes would wait until V8 collects the whole
 * heap.
 */
export function takeBlock(): Uint8Array {
  return spare.pop() ?? new Uint8Array(replayBlockBytes);
}

/** Takes a block back for reuse. The caller keeps no reference to it: the next taker overwrites it. */
export function giveBack(block: Uint8Array): void {
  if (spare.length < spareBlocksMax) spare.push(block);
}
