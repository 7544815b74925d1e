import { describe, expect, test } from "vitest";
import { growthOf, leastOfTenths, type MemorySample } from "../../bench/soak.ts";

/** A hundred samples of each process, by what it holds at the n-th. */
function sampled(held: Readonly<Record<string, (at: number) => number>>): MemorySample[] {
  return Array.from({ length: 100 }, (_, at) => ({
    atMs: at * 1_000,
    rssKb: Object.fromEntries(Object.entries(held).map(([name, kb]) => [name, kb(at)])),
  }));
}

describe("a soak", () => {
  test("judges the one of our own processes that grew most, and neither NATS nor Redis", () => {
    const grown = {
      gateway: { before: 100, after: 90 },
      agent: { before: 100, after: 120 },
      nats: { before: 1, after: 9 },
    };
    expect(growthOf("live", grown)).toEqual({
      liveGrowth: 1.2,
      "live memory of the gateway, times": 0.9,
      "live memory of the agent, times": 1.2,
    });
  });

  test("tells of every process how much more it held in the last tenth of the time than in the second, at the least", () => {
    const saw = (at: number): number => 100 + (at % 10) * 5;
    const figures = leastOfTenths(sampled({ gateway: saw, redis: (at) => saw(at) + (at >= 90 ? 20 : 0) }));
    expect(Object.entries(figures)).toEqual([
      ["least resident of the gateway, last tenth over second", 1],
      ["least resident of the redis, last tenth over second", 1.2],
    ]);
  });

  test("does not count the time in which pools are filled for the first time", () => {
    const [times] = Object.values(leastOfTenths(sampled({ gateway: (at) => (at < 10 ? 1 : 100) })));
    expect(times).toBe(1);
  });
});
