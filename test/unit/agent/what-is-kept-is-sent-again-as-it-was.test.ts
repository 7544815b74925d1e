import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ReplayBuffer } from "../../../services/agent/jobs/replay-buffer.ts";

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ bytes: fc.oneof(fc.integer({ min: 13, max: 400 }), fc.integer({ min: 1, max: 20_000 })) }),
  },
  fc.record({ taken: fc.double({ min: 0, max: 1, noNaN: true }) }),
);

test("every frame that the client has not taken can be sent again, byte for byte, and what it has is never half told", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const kept = new ReplayBuffer();
      const all: { readonly frame: Uint8Array; readonly endOffset: number }[] = [];
      let taken = 0;
      for (const each of steps) {
        if ("taken" in each) {
          taken = Math.max(taken, Math.floor(each.taken * (all.at(-1)?.endOffset ?? 0)));
          kept.taken(taken);
        } else {
          const frame = new Uint8Array(each.bytes).fill(all.length + 1);
          const endOffset = (all.at(-1)?.endOffset ?? 0) + frame.byteLength;
          all.push({ frame, endOffset });
          kept.keep({ sequence: all.length, frame, endOffset });
        }
        const oldest = all.findIndex(({ endOffset }) => endOffset > taken);
        for (const from of [1, oldest, oldest + 1, oldest + 5, all.length]) {
          if (from < 1 || from > all.length) continue;
          const isKept = oldest >= 0 && from > oldest;
          expect(kept.from(from)?.map((frame) => [...frame])).toEqual(
            isKept ? all.slice(from - 1).map(({ frame }) => [...frame]) : undefined,
          );
        }
      }
    }),
    { numRuns: 60 },
  );
});
