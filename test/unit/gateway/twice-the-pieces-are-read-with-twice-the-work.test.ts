import { getHeapStatistics } from "node:v8";
import { expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { readRequest } from "../../harness/read-requests.ts";
import { manyPieces, type ManyPieces } from "../../harness/many-pieces.ts";

/** Twice the pieces may take so many times the memory; a copy for each piece takes nearly four times as much. */
const timesMax = 2.6;

const bytesOf = ({ fields }: ManyPieces, count: number): Buffer =>
  Buffer.from(JSON.stringify({ model: "scripted", ...fields(count) }));

/** Bytes that V8 allocates to read a request of `count` pieces, at the least: some readings make what later ones have. */
function allocatedFor(pieces: ManyPieces, count: number): number {
  const bytes = bytesOf(pieces, count);
  const readings = Array.from({ length: 4 }, () => {
    const before = allocated();
    readRequest(pieces.outer, bytes);
    return allocated() - before;
  });
  return Math.min(...readings);
}

function allocated(): number {
  const { total_allocated_bytes: bytes } = getHeapStatistics() as { total_allocated_bytes?: number };
  if (bytes === undefined) throw new Error("This Node does not count what it allocates; run the tests on Node 26.");
  return bytes;
}

test.each(manyPieces)("twice as many $name are read with twice the work", (pieces) => {
  expect(bytesOf(pieces, pieces.most).byteLength).toBeLessThanOrEqual(limits.partBytes);
  const half = allocatedFor(pieces, pieces.most / 2);
  expect(allocatedFor(pieces, pieces.most) / half).toBeLessThanOrEqual(timesMax);
});
