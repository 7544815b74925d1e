import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeJson, encodeJson, endPayload } from "#shared/protocol/frame-payload.ts";
import { readEnd } from "../../../services/gateway/dispatch/read-end.ts";

const odd = fc.constantFrom(null, true, "", "text", [], {}, 0, -1, 0.5, 1, 2, 129, 1e300, -2, 2.5, 2 ** 53);
const whole = fc.integer({ min: 1, max: 128 });
const real = fc.double({ min: 0, max: 1, noNaN: true });

/** Values as most are, of which now and then a field or two say something odd. */
function bent<T extends object>(usual: fc.Arbitrary<T>, fields: readonly string[]): fc.Arbitrary<object> {
  const bend = fc.dictionary(fc.constantFrom(...fields), odd, { maxKeys: 2, noNullPrototype: true });
  return fc
    .tuple(usual, fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: bend }))
    .map(([one, other]) => ({ ...one, ...other }));
}

const counts = { cachedTokens: whole, reasoningTokens: whole };
const usage = fc.record(
  { promptTokens: whole, completionTokens: whole, ...counts },
  { requiredKeys: ["promptTokens", "completionTokens"] },
);
const end = bent(
  fc.record({
    finishReason: fc.constantFrom("stop", "length", "tool_calls", null),
    usage: bent(usage, ["promptTokens", "completionTokens", ...Object.keys(counts)]),
    timings: bent(fc.record({ queuedMs: real, firstTokenMs: real, totalMs: real }), ["queuedMs", "firstTokenMs"]),
  }),
  ["finishReason", "usage", "timings"],
);

describe("an end frame", () => {
  test("is read exactly as the schema reads it", () => {
    let read = 0;
    fc.assert(
      fc.property(end, (told) => {
        const bytes = encodeJson(told);
        const here = readEnd(bytes);
        if (here !== undefined) read += 1;
        expect(here).toEqual(decodeJson(endPayload, bytes));
      }),
      { numRuns: 3_000 },
    );
    expect(read).toBeGreaterThan(100);
  });

  test("that is no JSON is none", () => {
    expect(readEnd(Buffer.from("{"))).toBeUndefined();
  });
});
