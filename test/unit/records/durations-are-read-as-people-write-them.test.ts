import * as fc from "fast-check";
import { expect, test } from "vitest";
import { formatDuration } from "#shared/process/quantities.ts";
import { duration, durationMsMax } from "#shared/records/shown-key.ts";

test.each([
  ["90d", 7_776_000_000],
  ["12h", 43_200_000],
  ["30m", 1_800_000],
  ["45s", 45_000],
  ["500ms", 500],
])("%s is %d ms", (text, ms) => {
  expect(duration.parse(text)).toBe(ms);
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  "",
  "d",
  "90",
  "-1d",
  "+1d",
  "1.5h",
  "NaN",
  "1e20",
  "1e20d",
  "Infinityd",
  " 1d",
  "1d ",
  "1 d",
  "1D",
  "1d12h",
])("%j is refused, and the message shows how to write it", (text) => {
  expect(duration.safeParse(text).error?.issues[0]?.message).toContain("such as 90d");
});

test.each(["3651d", "999999999999999d", "999999999999999ms"])(
  "%s is refused, and the message names the limit",
  (text) => {
    expect(duration.safeParse(text).error?.issues[0]?.message).toBe("must be at most 3650d");
  },
);

test("nothing is no duration", () => {
  expect(duration.safeParse("0d").error?.issues[0]?.message).toBe("must be longer than nothing");
});

test("a written duration is read as it was", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: durationMsMax }), (ms) => {
      expect(duration.parse(formatDuration(ms))).toBe(ms);
    }),
  );
});
