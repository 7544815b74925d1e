import { commandGoals, type CommandTime } from "./command-times.ts";
import type { LoopHold } from "./loop-holds.ts";
import { cpuPerUnit, type Measurement, type Unit } from "./measurement.ts";
import { overRounds } from "./over-rounds.ts";

/**
 * The goals of the quick bench: ratios over the bare pipeline of the same round. Rounds of one commit lie up to a third
 * apart, and hosts as much again, so CI (`npm run bench -- --quick --check`) fails above twice the goal. Paired runs of
 * two commits show less than that. A goal is lowered when a change lowers the measurement.
 */
export const goals: readonly {
  readonly scenario: string;
  /** CPU time of a request or of a chunk; without it the p50 of answers. */
  readonly unit?: Unit;
  readonly goal: number;
  /** The measured variant and the one that it is held against: `trunkline` over `bare` unless given. */
  readonly variant?: string;
  readonly over?: string;
}[] = [
  { scenario: "whole-32", unit: "request", goal: 6.5 },
  { scenario: "whole-1", goal: 5 },
  { scenario: "burst", unit: "chunk", goal: 2.8 },
  { scenario: "paced-100", unit: "chunk", goal: 1.7 },
  { scenario: "burst", unit: "chunk", goal: 1.2, variant: "messages", over: "trunkline" },
  { scenario: "paced-100", unit: "chunk", goal: 1.2, variant: "messages", over: "trunkline" },
];
/** The longest CPU time that one request should hold the event loop of a gateway. */
export const loopHoldGoalMs = 75;
/** Above so many times its goal a figure is the fault of a change, whatever the host does. */
const failsAt = 2;

export interface CheckedGoal {
  readonly name: string;
  readonly goal: number;
  readonly measured: number | undefined;
  readonly verdict: "reached" | "missed" | "failed" | "not measured" | "wrong answers";
  readonly note: string;
}

/** True if CI goes on: a missed goal is told and fails nothing. */
export function passes({ verdict }: CheckedGoal): boolean {
  return verdict === "reached" || verdict === "missed";
}

/** Holds the medians of the rounds, the times of commands and the longest loop hold against the goals. */
export function checkGoals(
  measurements: readonly Measurement[],
  holds: readonly LoopHold[],
  times: readonly CommandTime[] = [],
): CheckedGoal[] {
  const ratios = goals.map(({ scenario, unit, goal, variant = "trunkline", over = "bare" }): CheckedGoal => {
    const figure = (measured: Measurement): number | undefined =>
      unit === undefined ? measured.total?.p50 : cpuPerUnit(measured, unit);
    const { spread, leftOut } = overRounds(measurements, { scenario, variant, over, figure });
    const isWrong = leftOut.some((line) => /(?:trunkline|messages) (gave|refused)/.test(line));
    const verdict = isWrong ? "wrong answers" : verdictOf(spread?.median, goal);
    const name = `${scenario}: ${unit === undefined ? "p50" : `CPU per ${unit}`} of ${variant}, over ${over}`;
    return { name, goal, measured: spread?.median, verdict, note: leftOut.join("; ") };
  });
  const longest = holds.toSorted((a, b) => b.gatewayMs - a.gatewayMs)[0];
  const name = "the longest that one request holds the gateway's event loop, ms of CPU";
  const measured = longest?.gatewayMs;
  const verdict = verdictOf(measured, loopHoldGoalMs);
  const commands = times.map(({ line, overNode }): CheckedGoal => {
    const goal = commandGoals[line] ?? NaN;
    return { name: `${line}, over node -e 0`, goal, measured: overNode, verdict: verdictOf(overNode, goal), note: "" };
  });
  return [...ratios, ...commands, { name, goal: loopHoldGoalMs, measured, verdict, note: longest?.name ?? "" }];
}

function verdictOf(measured: number | undefined, goal: number): CheckedGoal["verdict"] {
  if (measured === undefined) return "not measured";
  if (measured <= goal) return "reached";
  return measured <= failsAt * goal ? "missed" : "failed";
}
