import { describe, expect, test } from "vitest";
import type { Measurement } from "../../bench/measurement.ts";
import { checkBounds } from "../../bench/report/bounds.ts";
import { judgeTargets, type JudgedTarget } from "../../bench/report/judge-targets.ts";
import { targets } from "../../bench/report/targets.ts";
import { costing, measured } from "./measured.ts";

function judged(id: string, measurements: readonly Measurement[]): JudgedTarget {
  const found = judgeTargets(measurements).find(({ target }) => target.id === id);
  if (found === undefined) throw new Error(`no target ${id}`);
  return found;
}

const five = <T>(each: (round: number) => T): T[] => [1, 2, 3, 4, 5].map(each);

describe("a target", () => {
  test("is met or missed by the median of its rounds, whatever single rounds were", () => {
    const base = costing("bare", [10, 10, 10, 10, 10]);
    const good = judged("small-answers-cpu-b", [...base, ...costing("trunkline", [12, 13, 14, 99, 99])]);
    expect(good).toMatchObject({ verdict: "met", rounds: 5, spread: { median: 1.4, min: 1.2, max: 9.9 } });
    expect(good.why).toBeUndefined();
    const bad = judged("small-answers-cpu-b", [...base, ...costing("trunkline", [12, 13, 16, 16, 16])]);
    expect(bad.verdict).toBe("missed");
  });

  test("says when it rests on fewer rounds than are asked for", () => {
    const few = judged("small-answers-cpu-b", [...costing("bare", [10]), ...costing("trunkline", [10])]);
    expect(few).toMatchObject({ verdict: "met", why: "1 of 5 rounds" });
  });

  test("stands beside what the floor of the design reaches of it, in the same rounds", () => {
    const [ours, peer] = [costing("trunkline", [20, 20]), costing("musistudio", [100, 100])];
    const near = judged("small-answers-cpu-m", [...ours, ...peer, ...costing("bare", [30, 30])]);
    expect(near).toMatchObject({ verdict: "met", floor: { spread: { median: 0.3 }, isBeyond: true } });
    const far = judged("small-answers-cpu-m", [...ours, ...peer, ...costing("bare", [10, 10])]);
    expect(far.floor).toMatchObject({ spread: { median: 0.1 }, isBeyond: false });
    expect(judged("small-answers-cpu-m", [...ours, ...peer]).floor).toBeUndefined();
  });

  test("of two gateways stands beside what the floor costs with two, and none beside the floor itself", () => {
    const all = ["bare", "trunkline", "trunkline-2"].flatMap((variant) => costing(variant, [10]));
    expect(judged("small-answers-cpu-b", all).floor).toBeUndefined();
    expect(judged("two-gateways-cpu", all).floor).toBeUndefined();
    const withTwo = judged("two-gateways-cpu", [...all, ...costing("bare-2", [13])]);
    expect(withTwo.floor).toMatchObject({ spread: { median: 1.3 }, isBeyond: true });
  });

  test("says what was not measured", () => {
    expect(judged("small-answers-cpu-p", costing("trunkline", [10]))).toMatchObject({
      verdict: "not measured",
      why: "no portkey in whole-32",
    });
  });

  test("rests on rounds that the host disturbed only where there are no others, and says so", () => {
    const theirs = (...shares: readonly number[]): Measurement[] =>
      shares.flatMap((stealShare, at) => costing("portkey", [90 + at], { stealShare, round: at + 1 }));
    const ours = [...costing("trunkline", [9], { round: 1 }), ...costing("trunkline", [9], { round: 2 })];
    const all = judged("small-answers-cpu-p", [...ours, ...theirs(0.5, 0.5)]);
    expect(all).toMatchObject({ rounds: 2, why: "2 of 5 rounds; the host disturbed all of them" });
    const one = judged("small-answers-cpu-p", [...ours, ...theirs(0.5, 0)]);
    expect(one).toMatchObject({ rounds: 1, why: "1 of 5 rounds", spread: { median: 9 / 91 } });
  });

  test("is missed when our own answers were wrong, however cheap, and not when a peer's were", () => {
    const base = costing("musistudio", [100, 100]);
    const ours = costing("trunkline", [1, 1]);
    const wrong = (all: readonly Measurement[]): Measurement[] => all.map((one) => ({ ...one, bad: one.round - 1 }));
    expect(judged("small-answers-cpu-m", [...base, ...wrong(ours)])).toMatchObject({
      verdict: "missed",
      why: "round 2: cut or wrong answers: 1",
    });
    expect(judged("small-answers-cpu-m", [...wrong(base), ...ours])).toMatchObject({ verdict: "met", rounds: 1 });
  });

  test("of delivery is a least, and of broken streams none", () => {
    const paced = (chunks: number, bad: number): Measurement[] =>
      ["paced-2000", "paced-4000"].flatMap((scenario) =>
        five((round) => measured({ scenario, round, chunks, offeredChunks: 1_000, bad })),
      );
    expect(judged("paced-2000-delivered", paced(991, 0)).verdict).toBe("met");
    expect(judged("paced-2000-delivered", paced(980, 0)).verdict).toBe("missed");
    expect(judged("paced-4000-broken", paced(1_000, 0)).verdict).toBe("met");
    expect(judged("paced-4000-broken", paced(1_000, 1)).verdict).toBe("missed");
    expect(judged("paced-4000-broken", paced(0, 0)).verdict).toBe("not measured");
  });

  test("of memory is what 1,500 further streams took in the same round", () => {
    const streams = (scenario: string, after: number): Measurement[] =>
      five((round) => measured({ scenario, round, rssKb: { gateway: { before: 1, after: after + round } } }));
    const both = [...streams("paced-500", 150_000), ...streams("paced-2000", 168_000)];
    expect(judged("memory-gateway", both)).toMatchObject({ verdict: "met", spread: { median: 12, min: 12, max: 12 } });
    expect(judged("memory-agent", both).verdict).toBe("not measured");
  });

  test("of a rejection pays for those that are served beside it first", () => {
    const variant = "trunkline-small";
    const served = five((round) =>
      measured({ scenario: "overload-served", variant, round, cpuUs: { gateway: 100_000 } }),
    );
    const over = five((round) =>
      measured({ scenario: "overload-refused", variant, round, refused: { 429: 2_000 }, cpuUs: { gateway: 130_000 } }),
    );
    expect(judged("rejection-cost", [...served, ...over]).spread?.median).toBeCloseTo(0.15);
  });

  test("holds one process against another variant's, and times against direct's, in ms", () => {
    const chunks = { scenario: "paced-2000", chunks: 1_000 };
    const ours = five((round) => measured({ ...chunks, round, cpuUs: { gateway: 900, nats: 5_000 } }));
    const nginx = five((round) => measured({ ...chunks, variant: "nginx", round, cpuUs: { nginx: 1_000 } }));
    expect(judged("paced-2000-gateway-nginx", [...ours, ...nginx]).spread?.median).toBe(0.9);
    const first = (variant: string, p50: number): Measurement[] =>
      five((round) => measured({ scenario: "first-byte", variant, round, firstByte: { p50, p99: p50, count: 9 } }));
    const added = judged("first-byte-over-direct", [...first("trunkline", 650), ...first("direct", 150)]);
    expect(added).toMatchObject({ verdict: "met", spread: { median: 0.5 } });
  });

  test("may be held by what only the product itself can tell", () => {
    const soaked = judged("soak-live", [measured({ scenario: "soak", figures: { liveGrowth: 2 } })]);
    expect(soaked).toMatchObject({ verdict: "missed", spread: { median: 2 } });
    expect(soaked.why).toBeUndefined();
  });
});

test("every target has a name of its own", () => {
  expect(new Set(targets.map(({ id }) => id)).size).toBe(targets.length);
});

describe("a check against committed figures", () => {
  const cost = (us: number): JudgedTarget[] => judgeTargets([...costing("bare", [10]), ...costing("trunkline", [us])]);
  const committed = { "small-answers-cpu-b": 1.4 };

  test("fails on more than a doubling, and not on a missed target", () => {
    expect(checkBounds(cost(28), committed)).toMatchObject({ passes: true, rows: [{ verdict: "holds" }] });
    expect(checkBounds(cost(29), committed)).toMatchObject({ passes: false, rows: [{ verdict: "doubled" }] });
  });

  test("tells what was not measured, and fails where nothing was", () => {
    const both = { ...committed, "small-answers-cpu-p": 0.05 };
    const { passes, rows } = checkBounds(cost(10), both);
    expect(passes).toBe(true);
    expect(rows.map(({ verdict }) => verdict)).toEqual(["not measured", "holds"]);
    expect(checkBounds(judgeTargets([]), committed).passes).toBe(false);
  });

  test("fails on wrong answers", () => {
    const wrong = judgeTargets([...costing("bare", [10]), ...costing("trunkline", [10], { bad: 1 })]);
    expect(checkBounds(wrong, committed)).toMatchObject({ passes: false, rows: [{ verdict: "broken" }] });
  });

  test("holds what was nothing against the target, and what has to be large against its half", () => {
    const grown = (liveGrowth: number): JudgedTarget[] =>
      judgeTargets([measured({ scenario: "soak", figures: { liveGrowth } })]);
    expect(checkBounds(grown(1), { "soak-live": 0 }).passes).toBe(true);
    expect(checkBounds(grown(2), { "soak-live": 0 }).passes).toBe(false);
    const delivered = (chunks: number): JudgedTarget[] =>
      judgeTargets([measured({ scenario: "paced-2000", chunks, offeredChunks: 100 })]);
    expect(checkBounds(delivered(60), { "paced-2000-delivered": 1 }).passes).toBe(true);
    expect(checkBounds(delivered(40), { "paced-2000-delivered": 1 }).passes).toBe(false);
  });

  test("names a target that does not exist", () => {
    expect(() => checkBounds(cost(10), { "smal-answers": 1 })).toThrow("smal-answers");
  });
});
