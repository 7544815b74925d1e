/** A block holds some frames of a stream. More would wait half empty, less costs as much again for what is noted of it. */
export const replayBlockBytes = 2 * 1024;

/** So many blocks wait to be used again: what 2,000 streams give back in a second. */
const spareBlocksMax = 4 * 1024;

const spare: Uint8Array[] = [];

/**
 * Memory for what is kept of answers. Each stream needs some anew several times a second and for no longer than that: as
 * garbage it would be old by then, and wait in tens of megabytes for V8 to look at all of the heap.
 */
export function takeBlock(): Uint8Array {
  return spare.pop() ?? new Uint8Array(replayBlockBytes);
}

/** Nobody may hold anything of it any more: the next to take it writes over it. */
export function giveBack(block: Uint8Array): void {
  if (spare.length < spareBlocksMax) spare.push(block);
}
