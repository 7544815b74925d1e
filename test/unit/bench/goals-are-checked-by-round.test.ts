import { expect, test } from "vitest";
import { checkGoals, loopHoldGoalMs, passes } from "../../bench/goals.ts";
import { cpuPerUnit, type Measurement } from "../../bench/measurement.ts";
import { overRounds, spreadOf } from "../../bench/over-rounds.ts";

/** One calm measurement for each cost in µs a request, in rounds from 1 on. */
function costing(variant: string, costs: readonly number[], given: Partial<Measurement> = {}): Measurement[] {
  return costs.map((us, at) => ({
    scenario: "whole-32",
    variant,
    round: at + 1,
    windowS: 3,
    requests: 1_000,
    refused: {},
    bad: 0,
    firstBad: "",
    chunks: 500,
    cpuUs: { gateway: us * 600, agent: us * 400 },
    rssKb: {},
    stealShare: 0,
    ...given,
  }));
}
const figure = (measured: Measurement): number | undefined => cpuPerUnit(measured, "request");
const ratio = { scenario: "whole-32", variant: "trunkline", over: "bare", figure };

test("a cost is that of all processes, or of one, by request or by chunk", () => {
  const [one] = costing("trunkline", [10]);
  if (one === undefined) throw new Error("no measurement");
  expect(cpuPerUnit(one, "request")).toBe(10);
  expect(cpuPerUnit(one, "chunk")).toBe(20);
  expect(cpuPerUnit(one, "request", "gateway")).toBe(6);
  expect(cpuPerUnit(one, "request", "redis")).toBeUndefined();
  expect(cpuPerUnit({ ...one, requests: 0 }, "request")).toBeUndefined();
});

test("a ratio compares figures of the same round", () => {
  const all = [...costing("trunkline", [10, 40, 90]), ...costing("bare", [10, 20, 30])];
  expect(overRounds(all, ratio)).toEqual({ spread: { median: 2, min: 1, max: 3 }, rounds: 3, leftOut: [] });
});

test("a ratio leaves out rounds with wrong answers, refusals or a missing window, and names the reason", () => {
  const all = [
    ...costing("trunkline", [10, 20, 30, 40]),
    ...costing("bare", [10, 10, 10]).map((one) =>
      one.round === 2 ? { ...one, bad: 7, firstBad: "cut" } : one.round === 3 ? { ...one, refused: { 429: 5 } } : one,
    ),
  ];
  expect(overRounds(all, ratio)).toEqual({
    spread: { median: 1, min: 1, max: 1 },
    rounds: 1,
    leftOut: [
      "round 2: bare gave 7 wrong answers; the first: cut",
      "round 3: bare refused requests: 5 with 429",
      "round 4: bare was not measured",
    ],
  });
});

test("a ratio counts rounds that the host disturbed only when there are no others", () => {
  const disturbed = costing("trunkline", [30], { stealShare: 0.5 });
  expect(overRounds([...disturbed, ...costing("bare", [10])], ratio).spread?.median).toBe(3);
  const calm = costing("trunkline", [20], { round: 2 });
  const all = [...disturbed, ...calm, ...costing("bare", [10, 10])];
  expect(overRounds(all, ratio)).toMatchObject({ spread: { median: 2 }, rounds: 1 });
});

test("the median of an even number of rounds lies between the middle ones", () => {
  expect(spreadOf([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 });
});

const verdicts = (measurements: readonly Measurement[], gatewayMs = 1): string[] =>
  checkGoals(measurements, [{ name: "a chat", status: 200, gatewayMs, agentMs: 1 }]).map(({ verdict }) => verdict);

test("a goal is reached or missed by the median of the rounds, which fails above twice the goal", () => {
  const base = costing("bare", [10, 10, 10]);
  expect(verdicts([...base, ...costing("trunkline", [20, 30, 900])])[0]).toBe("reached");
  expect(verdicts([...base, ...costing("trunkline", [20, 100, 900])])[0]).toBe("missed");
  expect(verdicts([...base, ...costing("trunkline", [20, 900, 900])])[0]).toBe("failed");
});

test("a goal fails by wrong answers in any round, and without a round that measured it", () => {
  const base = costing("bare", [10, 10]);
  const wrong = costing("trunkline", [10, 10]).map((one) => (one.round === 2 ? { ...one, bad: 1 } : one));
  expect(verdicts([...base, ...wrong])[0]).toBe("wrong answers");
  expect(verdicts(base)[0]).toBe("not measured");
  const [wrongGoal, missingGoal] = [checkGoals([...base, ...wrong], [])[0], checkGoals(base, [])[0]];
  expect([wrongGoal, missingGoal].map((goal) => goal && passes(goal))).toEqual([false, false]);
});

test("a goal limits the longest time that a request holds the gateway's event loop", () => {
  expect(verdicts([], loopHoldGoalMs).at(-1)).toBe("reached");
  expect(verdicts([], 2 * loopHoldGoalMs).at(-1)).toBe("missed");
  expect(verdicts([], 2 * loopHoldGoalMs + 1).at(-1)).toBe("failed");
  expect(checkGoals([], []).at(-1)?.verdict).toBe("not measured");
});

test("a goal limits the time of a command over that of an empty Node", () => {
  const times = [5, 10].map((overNode) => ({ line: "trunkline --help", ms: 1, overNode }));
  const checked = checkGoals([], [], times).slice(-3, -1);
  expect(checked.map(({ verdict }) => verdict)).toEqual(["missed", "failed"]);
});
