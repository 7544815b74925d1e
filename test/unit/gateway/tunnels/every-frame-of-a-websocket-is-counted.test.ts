import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FrameRate } from "../../../../services/gateway/tunnels/frame-rate.ts";

/** A masked frame as a client sends it. The kind of a frame does not matter. */
function frameOf(payloadBytes: number): Buffer {
  const head =
    payloadBytes < 126
      ? [0x82, 0x80 | payloadBytes]
      : payloadBytes < 65_536
        ? [0x82, 0xfe, payloadBytes >> 8, payloadBytes & 0xff]
        : [0x82, 0xff, 0, 0, 0, 0, 0, payloadBytes >> 16, (payloadBytes >> 8) & 0xff, payloadBytes & 0xff];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4 + payloadBytes, 0x82)]);
}

test("the frames of a WebSocket are counted exactly, wherever their bytes are split", () => {
  const payload = fc.oneof(fc.nat({ max: 300 }), fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536));
  fc.assert(
    fc.property(fc.array(payload, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 30 }), (payloads, cuts) => {
      const bytes = Buffer.concat(payloads.map(frameOf));
      const places = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
      const frames = new FrameRate();
      const counts = places.slice(1).map((place, at) => frames.count(bytes.subarray(places[at], place)));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(payloads.length);
    }),
  );
});
