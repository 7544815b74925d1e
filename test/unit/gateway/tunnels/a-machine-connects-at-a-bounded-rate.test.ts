import { expect, test } from "vitest";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import { connectsPerMinuteMax } from "#shared/protocol/pairing.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const pauseMs = 60_000 / connectsPerMinuteMax;

test("a machine connects as often as it likes up to its limit, and then at the limit's pace", () => {
  const clock = new TurnableClock();
  const rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  for (let count = 0; count < connectsPerMinuteMax; count += 1) expect(rate.take("a machine")).toBe(0);
  expect(rate.take("a machine")).toBe(pauseMs);
  expect(rate.take("another machine")).toBe(0);
  clock.advance(pauseMs - 1);
  expect(rate.take("a machine")).toBe(1);
  clock.advance(1);
  expect(rate.take("a machine")).toBe(0);
  expect(rate.take("a machine")).toBe(pauseMs);
});

test("a machine that stays away for a minute has its whole limit again", () => {
  const clock = new TurnableClock();
  const rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  while (rate.take("a machine") === 0);
  clock.advance(60_000);
  for (let count = 0; count < connectsPerMinuteMax; count += 1) expect(rate.take("a machine")).toBe(0);
});
