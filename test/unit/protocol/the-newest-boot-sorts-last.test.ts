import * as fc from "fast-check";
import { expect, test } from "vitest";
import { epoch, newEpoch } from "#shared/protocol/identifiers.ts";

/** From 1970 to the year 2286, when epochs get a digit more. */
const wallMs = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 9_999_999_999_998 }));

test("an epoch sorts as text by the time of its boot", () => {
  fc.assert(
    fc.property(wallMs, wallMs, (earlier, later) => {
      fc.pre(earlier < later);
      expect(newEpoch(earlier) < newEpoch(later)).toBe(true);
    }),
  );
});

test("an epoch is newer than all that were heard, also when the clock of this host was set back", () => {
  fc.assert(
    fc.property(wallMs, fc.array(wallMs, { maxLength: 5 }), (now, boots) => {
      const heard = boots.map((boot) => newEpoch(boot));
      const own = newEpoch(now, heard);
      for (const other of heard) expect(own > other).toBe(true);
      expect(own >= newEpoch(now).slice(0, 13)).toBe(true);
      expect(epoch.safeParse(own).success).toBe(true);
    }),
  );
});

test("an epoch takes any clock reading, also one with a fraction", () => {
  expect(newEpoch(1_767_225_600_000.75)).toMatch(/^1767225600000-[0-9a-f]{8}$/);
});

test("an epoch tells two boots of the same millisecond apart", () => {
  const boots = Array.from({ length: 100 }, () => newEpoch(1_767_225_600_000));
  expect(new Set(boots).size).toBe(100);
});
