import { describe, expect, test } from "vitest";
import { growthFigures, type MemorySample } from "../../bench/soak.ts";

/** A hundred samples of each process, by what it holds at the n-th. */
function sampled(held: Readonly<Record<string, (at: number) => number>>): MemorySample[] {
  return Array.from({ length: 100 }, (_, at) => ({
    atMs: at * 1_000,
    rssKb: Object.fromEntries(Object.entries(held).map(([name, kb]) => [name, kb(at)])),
  }));
}

describe("a soak", () => {
  test("tells how much each process grew from the second tenth of its time to the last, by the least it held", () => {
    const saw = (at: number): number => 100 + (at % 10) * 5;
    const figures = growthFigures(sampled({ gateway: saw, agent: (at) => saw(at) + (at >= 90 ? 20 : 0) }));
    expect(figures).toEqual({ rssGrowth: 1.2, "gateway's growth": 1, "agent's growth": 1.2 });
  });

  test("does not count the time in which pools are filled for the first time", () => {
    const figures = growthFigures(sampled({ gateway: (at) => (at < 10 ? 1 : 100), agent: () => 50 }));
    expect(figures["rssGrowth"]).toBe(1);
  });

  test("judges our own processes, and tells what NATS and Redis did beside it", () => {
    const figures = growthFigures(sampled({ gateway: () => 1, agent: () => 1, nats: (at) => 1 + at }));
    expect(figures["rssGrowth"]).toBe(1);
    expect(figures["nats's growth"]).toBeGreaterThan(5);
  });
});
