import * as fc from "fast-check";
import type { Splitter } from "../../../services/agent/runtimes/runtime-answer.ts";

/** What each of these pieces of a body completes, and at last what its end does. */
export function completedBy<Value>(
  open: (take: (value: Value) => void) => Splitter,
  pieces: readonly (string | Uint8Array)[],
): Value[][] {
  const batches: Value[][] = [];
  const splitter = open((value) => void batches.at(-1)?.push(value));
  for (const piece of pieces) {
    batches.push([]);
    splitter.push(Buffer.from(piece));
  }
  batches.push([]);
  splitter.end();
  return batches;
}

/** These bytes in pieces, cut anywhere. */
export const cutAnywhere = (bytes: Buffer): fc.Arbitrary<Uint8Array[]> =>
  fc.array(fc.nat(bytes.length), { maxLength: 12 }).map((cuts) => {
    const ends = [0, ...cuts.toSorted((one, other) => one - other), bytes.length];
    return ends.slice(1).map((end, at) => bytes.subarray(ends[at], end));
  });
