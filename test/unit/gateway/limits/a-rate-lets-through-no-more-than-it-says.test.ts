import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import {
  chargedLevels,
  emptyLevels,
  levelsAt,
  limitStatusOf,
  waitMsFor,
  windowMs,
} from "../../../../services/gateway/limits/judge-demand.ts";

/** Takes what is allowed, and tells in what time it would have been. */
function bucketOf(of: "requests" | "tokens", limit: number) {
  const limits: KeyLimits = { [`${of}PerMinute`]: limit };
  let levels = emptyLevels;
  const look = (nowMs: number) => (levels = levelsAt(levels, limits, nowMs));
  const charge = (nowMs: number, cost: number): void => {
    levels = chargedLevels(look(nowMs), { requests: 0, tokens: 0, [of]: cost }, limits);
  };
  return {
    charge,
    take(nowMs: number, cost = 1): number {
      const waitMs = waitMsFor(cost, look(nowMs)[of], limit);
      if (waitMs === 0) charge(nowMs, Math.min(cost, limit));
      return waitMs;
    },
    limitStatus: (nowMs: number) => limitStatusOf(limits, look(nowMs))[of],
  };
}

test("a limit of N a minute lets exactly N through at once, whatever N is, and the next when an N-th of a minute has passed", () => {
  for (const limit of [1, 3, 7, 60, 997, 100_000]) {
    const bucket = bucketOf("requests", limit);
    for (let each = 0; each < limit; each += 1) expect(bucket.take(5)).toBe(0);
    const waitMs = bucket.take(5);
    expect(waitMs).toBe(Math.ceil(windowMs / limit));
    expect(bucket.take(5 + waitMs - 1)).toBeGreaterThan(0);
    expect(bucket.take(5 + waitMs)).toBe(0);
  }
});

test("a limit by the minute never lets more through than its limit and what drained since, in any span of time", () => {
  const asks = fc.array(fc.record({ afterMs: fc.nat(20_000), cost: fc.integer({ min: 1, max: 40 }) }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 }), asks, (limit, steps) => {
      const bucket = bucketOf("tokens", limit);
      const taken: { atMs: number; cost: number }[] = [];
      let nowMs = 0;
      for (const { afterMs, cost } of steps) {
        nowMs += afterMs;
        if (bucket.take(nowMs, cost) === 0) taken.push({ atMs: nowMs, cost: Math.min(cost, limit) });
      }
      for (const [first, { atMs: fromMs }] of taken.entries()) {
        let sum = 0;
        for (const { atMs, cost } of taken.slice(first)) {
          sum += cost;
          expect(sum).toBeLessThanOrEqual(limit + (limit * (atMs - fromMs)) / windowMs + 0.001);
        }
      }
    }),
  );
});

test("a client that waits for as long as it was told is let through, and not a millisecond earlier", () => {
  const asks = fc.array(fc.record({ afterMs: fc.nat(5_000), cost: fc.integer({ min: 1, max: 100 }) }));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), asks, (limit, steps) => {
      const bucket = bucketOf("tokens", limit);
      let nowMs = 1_700_000_000_000;
      for (const { afterMs, cost } of steps) {
        nowMs += afterMs;
        const waitMs = bucket.take(nowMs, cost);
        if (waitMs === 0) continue;
        expect(bucket.take(nowMs + waitMs - 1, cost)).toBeGreaterThan(0);
        nowMs += waitMs;
        expect(bucket.take(nowMs, cost)).toBe(0);
      }
    }),
  );
});

test("a limit by the minute says what is left, and when it is whole again", () => {
  const bucket = bucketOf("tokens", 100);
  expect(bucket.limitStatus(0)).toEqual({ limit: 100, remaining: 100, resetMs: 0 });
  bucket.take(0, 30);
  expect(bucket.limitStatus(0)).toEqual({ limit: 100, remaining: 70, resetMs: 18_000 });
  expect(bucket.limitStatus(17_999)).toEqual({ limit: 100, remaining: 99, resetMs: 1 });
  expect(bucket.limitStatus(18_000)).toEqual({ limit: 100, remaining: 100, resetMs: 0 });
});

test("a debt is paid off over minutes, and is never more than those", () => {
  const bucket = bucketOf("tokens", 100);
  bucket.charge(0, 250);
  expect(bucket.limitStatus(0)).toEqual({ limit: 100, remaining: 0, resetMs: 2.5 * windowMs });
  expect(bucket.take(0, 50)).toBe(2 * windowMs);
  bucket.charge(0, 1_000_000);
  expect(bucket.limitStatus(0)?.resetMs).toBe(10_002.5 * windowMs);
});

test("a refund never exceeds the limit", () => {
  const bucket = bucketOf("requests", 10);
  bucket.take(0);
  bucket.charge(0, -1);
  bucket.charge(0, -1);
  expect(bucket.limitStatus(0)).toMatchObject({ remaining: 10 });
  for (let each = 0; each < 10; each += 1) expect(bucket.take(0)).toBe(0);
  expect(bucket.take(0)).toBeGreaterThan(0);
});

test("a clock that was set back by an hour costs nobody an hour", () => {
  const bucket = bucketOf("requests", 10);
  const hourMs = 3_600_000;
  for (let each = 0; each < 9; each += 1) bucket.take(hourMs);
  expect(bucket.limitStatus(0)).toMatchObject({ remaining: 1 });
  expect([bucket.take(0), bucket.take(0)]).toEqual([0, windowMs / 10]);
  expect(bucket.take(windowMs / 10)).toBe(0);
});
