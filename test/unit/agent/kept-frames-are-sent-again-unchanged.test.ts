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
          const again = kept.frame(from);
          const expected = all[from - 1]?.frame ?? new Uint8Array();
          expect(again && Buffer.compare(again, expected)).toBe(isKept ? 0 : undefined);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("a frame that is sent again stays what it was, whatever is kept in the same memory before it has left", () => {
  const kept = new ReplayBuffer();
  kept.keep({ sequence: 1, frame: new Uint8Array(40).fill(1), endOffset: 40 });
  const again = kept.frame(1);
  kept.taken(40);
  new ReplayBuffer().keep({ sequence: 1, frame: new Uint8Array(40).fill(2), endOffset: 40 });
  expect([...(again ?? [])]).toEqual(Array.from({ length: 40 }, () => 1));
});

test("of streams that share memory each keeps its own, however they come and go", () => {
  const stream = fc.array(fc.record({ bytes: fc.integer({ min: 13, max: 1_500 }), takes: fc.boolean() }), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(fc.array(stream, { minLength: 2, maxLength: 6 }), (streams) => {
      const all = streams.map((steps, place) => ({ steps, place, kept: new ReplayBuffer(), bytes: 0 }));
      const longest = Math.max(...streams.map(({ length }) => length));
      for (let turn = 0; turn < longest; turn += 1) {
        for (const each of all) {
          const now = each.steps[turn];
          if (now === undefined) {
            each.kept.clear();
            continue;
          }
          each.bytes += now.bytes;
          const frame = new Uint8Array(now.bytes).fill(each.place + 1);
          each.kept.keep({ sequence: turn + 1, frame, endOffset: each.bytes });
          if (now.takes) each.kept.taken(each.bytes - now.bytes);
        }
        for (const { kept, steps, place } of all) {
          if (steps.length <= turn) continue;
          const last = kept.frame(turn + 1);
          const expected = new Uint8Array(steps[turn]?.bytes ?? 0).fill(place + 1);
          expect(Buffer.compare(last ?? new Uint8Array(), expected)).toBe(0);
        }
      }
    }),
    { numRuns: 40 },
  );
});
