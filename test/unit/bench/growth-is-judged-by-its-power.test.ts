import { expect, test } from "vitest";
import { pathCost } from "../../bench/report/cost.ts";
import { growthSeries, judgeGrowth, type GrowthSeries } from "../../bench/report/growth.ts";
import { measuredGrowths } from "../../bench/report/measured-growths.ts";
import type { Measurement } from "../../bench/measurement.ts";
import { costing, measured } from "./measured.ts";

const grown = (cost: (x: number) => number): GrowthSeries => ({
  name: "cost",
  points: [1, 10, 100, 1_000].map((x) => ({ x, y: cost(x), min: cost(x), max: cost(x) })),
});

test("a cost that doubles with the number is linear, and one that quadruples is not", () => {
  expect(
    judgeGrowth(
      grown((x) => 3 * x),
      "all",
    ),
  ).toMatchObject({ isLinearOrBetter: true });
  expect(
    judgeGrowth(
      grown((x) => 3 * x),
      "all",
    )?.exponent,
  ).toBeCloseTo(1);
  expect(
    judgeGrowth(
      grown((x) => x ** 2),
      "all",
    ),
  ).toMatchObject({ isLinearOrBetter: false });
  expect(
    judgeGrowth(
      grown((x) => Math.sqrt(x)),
      "all",
    )?.exponent,
  ).toBeCloseTo(0.5);
});

test("a cost of each that stays the same is linear for all, and one that grows is not", () => {
  expect(
    judgeGrowth(
      grown(() => 7),
      "each",
    )?.exponent,
  ).toBeCloseTo(1);
  expect(
    judgeGrowth(
      grown((x) => x ** 0.3),
      "each",
    ),
  ).toMatchObject({ isLinearOrBetter: false });
});

test("what breaks at the end is told beside the whole", () => {
  const verdict = judgeGrowth(
    grown((x) => (x < 1_000 ? 100 : 10_000)),
    "all",
  );
  expect(verdict?.lastExponent).toBeCloseTo(2);
  expect(verdict?.exponent).toBeLessThan(1);
});

test("one point, or none that has a size, is no growth", () => {
  expect(judgeGrowth({ name: "one", points: [{ x: 1, y: 1, min: 1, max: 1 }] }, "all")).toBeUndefined();
  expect(
    judgeGrowth(
      grown(() => 0),
      "all",
    ),
  ).toBeUndefined();
});

test("a series has the median of each window's rounds, and no point without one", () => {
  const all = [...costing("trunkline", [1, 3, 8], { scenario: "few" }), ...costing("trunkline", [9], { bad: 1 })];
  const at = [
    { x: 10, scenario: "few", variant: "trunkline" },
    { x: 20, scenario: "whole-32", variant: "trunkline" },
  ];
  expect(growthSeries("cost", all, at, (one) => pathCost(one, "request")).points).toEqual([
    { x: 10, y: 3, min: 1, max: 8 },
  ]);
});

test("what a run measured at several sizes becomes a plot, and nothing else does", () => {
  const unasked = (machines: number): Measurement =>
    measured({ scenario: "unasked", variant: `crowd-${machines}`, windowS: 2, cpuUs: { gateway: machines * 2_000 } });
  const growths = measuredGrowths([unasked(1), unasked(100), ...costing("trunkline", [10])]);
  expect(growths.map(({ name, series }) => [name, series.map((each) => each.name)])).toEqual([
    ["machines", ["gateway"]],
  ]);
  expect(growths[0]?.series[0]?.points.map(({ x, y }) => [x, y])).toEqual([
    [1, 1],
    [100, 100],
  ]);
});
