import { describe, expect, test } from "vitest";
import { costByKind, pathCost } from "../../bench/report/cost.ts";
import { overRounds, spreadOf } from "../../bench/report/over-rounds.ts";
import { pairedRatios } from "../../bench/report/paired-ratios.ts";
import { costing, measured } from "./measured.ts";

const pair = {
  scenario: "whole-32",
  variant: "trunkline",
  baseline: "bare",
  figure: (one: Parameters<typeof pathCost>[0]) => pathCost(one, "request"),
};

describe("a cost", () => {
  test("is that of all processes between client and runtime, told by their kind", () => {
    const two = measured({ requests: 10, cpuUs: { gateway: 100, "gateway 2": 50, nats: 30 } });
    expect(pathCost(two, "request")).toBe(18);
    expect([...costByKind(two, "request")]).toEqual([
      ["gateway", 15],
      ["nats", 3],
    ]);
  });

  test("is by chunk where chunks are counted, and by everything answered where some is refused", () => {
    expect(pathCost(measured({ chunks: 50, cpuUs: { gateway: 100 } }), "chunk")).toBe(2);
    expect(pathCost(measured({ requests: 1, refused: { 429: 3 }, cpuUs: { gateway: 100 } }), "request")).toBe(25);
  });

  test("is none where nothing stands between, or nothing went through", () => {
    expect(pathCost(measured({ variant: "direct" }), "request")).toBeUndefined();
    expect(pathCost(measured({ requests: 0, cpuUs: { gateway: 100 } }), "request")).toBeUndefined();
  });
});

describe("ratios", () => {
  test("compare what was measured in the same round", () => {
    const all = [...costing("trunkline", [10, 40, 90]), ...costing("bare", [10, 20, 30])];
    expect(pairedRatios(all, pair)).toEqual({ spread: { median: 2, min: 1, max: 3 }, rounds: 3, leftOut: [] });
  });

  test("leave out rounds that were disturbed or not measured, and say which and why", () => {
    const all = [
      ...costing("trunkline", [10, 20, 30, 40, 50]),
      ...costing("bare", [10, 10, 10]),
      ...costing("bare", [1], { round: 4, stealShare: 0.031 }),
    ].map((one) => (one.variant === "bare" && one.round === 2 ? { ...one, bad: 7 } : one));
    const { spread, rounds, leftOut } = pairedRatios(all, pair);
    expect({ spread, rounds }).toEqual({ spread: { median: 2, min: 1, max: 3 }, rounds: 2 });
    expect(leftOut.map(({ round, variant, why }) => `${round} ${variant} ${why}`)).toEqual([
      "2 bare cut or wrong answers: 7",
      "4 bare the host gave 3.1 % of the time to others",
      "5 bare was not measured",
    ]);
  });

  test("take no refusal for a cheap answer", () => {
    const all = [...costing("trunkline", [1], { refused: { 429: 5 } }), ...costing("bare", [10])];
    const { rounds, leftOut } = pairedRatios(all, pair);
    expect(rounds).toBe(0);
    expect(leftOut.map(({ why }) => why)).toEqual(["requests were refused: 5 with 429"]);
  });

  test("may need windows of several scenarios, all of the same round", () => {
    const all = [
      ...costing("trunkline", [1, 2], { scenario: "one" }),
      ...costing("trunkline", [5], { scenario: "two", round: 2 }),
    ];
    const needs = ["one", "two"].map((scenario) => ({ scenario, variant: "trunkline" }));
    const result = overRounds(
      all,
      needs,
      (one, two) => one && two && (pair.figure(two) ?? 0) - (pair.figure(one) ?? 0),
    );
    expect(result.spread?.median).toBe(3);
    expect(result.leftOut).toEqual([
      { scenario: "two", variant: "trunkline", round: 1, why: "was not measured", isBroken: false },
    ]);
  });
});

test("the median of an even number of rounds lies between the middle ones", () => {
  expect(spreadOf([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 });
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
});
