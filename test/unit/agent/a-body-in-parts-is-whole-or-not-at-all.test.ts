import { PartCollector } from "../../../services/agent/jobs/collect-parts.ts";
import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";

const sha256Of = (body: Uint8Array): string => createHash("sha256").update(body).digest("hex");
const collectorFor = (body: Uint8Array): PartCollector =>
  new PartCollector({ bodyBytes: body.byteLength, sha256: sha256Of(body) });

const someBody = fc.uint8Array({ minLength: 1, maxLength: 200 });
/** Parts as a network may bring them: any piece of the body, any number of times, in any order. */
const arrivals = fc.array(fc.tuple(fc.nat(199), fc.integer({ min: 1, max: 80 })), { maxLength: 40 });

test("a body in parts survives parts that are lost, come twice or in another order: what is acknowledged is there", () => {
  fc.assert(
    fc.property(someBody, arrivals, (body, parts) => {
      const collector = collectorFor(body);
      let expected = 0;
      for (const [offset, bytes] of parts) {
        if (expected === body.byteLength) break;
        const part = body.subarray(offset, offset + bytes);
        if (offset === expected) expected += part.byteLength;
        const collected = collector.add(offset, part);
        expect(collector.received).toBe(expected);
        expect(collected).toBe(expected === body.byteLength ? "whole" : "incomplete");
      }
      // The sender goes on from where it was told.
      if (expected === body.byteLength) return;
      const collected = collector.add(collector.received, body.subarray(collector.received));
      expect(collected === "whole" && Buffer.compare(collector.body, body)).toBe(0);
    }),
    { numRuns: 500 },
  );
});

test("a body in parts is corrupt when any one byte is another", () => {
  fc.assert(
    fc.property(someBody, fc.nat(199), fc.integer({ min: 1, max: 255 }), (body, at, difference) => {
      const changed = Uint8Array.from(body);
      const place = at % body.byteLength;
      changed[place] = (changed[place] ?? 0) ^ difference;
      expect(collectorFor(body).add(0, changed)).toBe("corrupt");
    }),
  );
});

test("a body in parts is corrupt when it grows beyond what its head said, and never larger than that", () => {
  const collector = collectorFor(Buffer.from("abc"));
  expect(collector.add(0, Buffer.from("abcd"))).toBe("corrupt");
  expect(collector.received).toBe(0);
});
