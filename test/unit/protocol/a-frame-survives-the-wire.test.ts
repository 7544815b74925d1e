import * as fc from "fast-check";
import { expect, test } from "vitest";
import { tokenCountMax } from "#shared/protocol/answer-events.ts";
import { decodeFrame, encodeFrame, framePrefixBytes, frameVersion, isTerminal } from "#shared/protocol/frame.ts";
import type { FrameKind } from "#shared/protocol/frame.ts";

const kinds = ["accept", "reject", "part-ack", "data", "end", "fault", "beat"] as const satisfies readonly FrameKind[];
const nothing = new Uint8Array();
const u32 = fc.oneof(fc.nat(), fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1));

test("a frame is read as it was written, its payload byte for byte, wherever in a buffer it lies", () => {
  const head = fc.record({ kind: fc.constantFrom(...kinds), sequence: u32, outputTokens: fc.nat(tokenCountMax) });
  const anyPayload = fc.uint8Array({ maxLength: 2_000 });
  fc.assert(
    fc.property(head, anyPayload, fc.nat(40), (given, payload, at) => {
      const encoded = encodeFrame(given, payload);
      const elsewhere = new Uint8Array(at + encoded.byteLength + 3).fill(0xff);
      elsewhere.set(encoded, at);
      const decoded = decodeFrame(elsewhere.subarray(at, at + encoded.byteLength));
      if (decoded.outcome !== "frame") throw new Error(decoded.outcome);
      const { payload: read, ...rest } = decoded.frame;
      expect(rest).toEqual(given);
      expect(Buffer.from(payload).equals(read)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("a frame carries 0 for what it is not given", () => {
  expect(decodeFrame(encodeFrame({ kind: "accept" }, nothing))).toMatchObject({
    outcome: "frame",
    frame: { sequence: 0, outputTokens: 0 },
  });
});

test("a frame has the prefix that the wire names, so that other builds can read it", () => {
  const frame = encodeFrame({ kind: "data", sequence: 0x01020304, outputTokens: 5 }, Buffer.from("hi"));
  expect([...frame]).toEqual([2, 4, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0, 0x68, 0x69]);
  const codes = kinds.map((kind) => encodeFrame({ kind }, nothing)[1]);
  expect(codes).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

test("a frame ends a job as end or fault and as nothing else", () => {
  expect(kinds.filter(isTerminal)).toEqual(["end", "fault"]);
});

test("bytes that are no frame never throws, whatever the bytes, and is told apart", () => {
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    // Mostly a right version, since random bytes seldom have it.
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Uint8Array.of(frameVersion, ...bytes)),
  );
  fc.assert(
    fc.property(anything, (bytes) => {
      const { outcome } = decodeFrame(bytes);
      if (bytes.byteLength < framePrefixBytes) expect(outcome).toBe("malformed");
      else if (bytes[0] !== frameVersion) expect(outcome).toBe("other-version");
      else expect(outcome).toBe((bytes[1] ?? 0) >= 1 && (bytes[1] ?? 0) <= 7 ? "frame" : "unknown-kind");
    }),
    { numRuns: 2_000 },
  );
});

test("bytes that are no frame names the version when that is another", () => {
  const frame = encodeFrame({ kind: "data" }, nothing);
  frame[0] = 1;
  expect(decodeFrame(frame)).toEqual({ outcome: "other-version", version: 1 });
});
