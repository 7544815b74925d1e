import { expect, test } from "vitest";
import { failoversMax, nextStep, roundsMax, type StepFacts } from "../../../services/gateway/jobs/next-step.ts";

const nobodyTookIt: StepFacts = {
  code: "agent_offline",
  failures: 0,
  others: undefined,
  rounds: 1,
  isLastTarget: true,
};
const machineFailed: StepFacts = { code: "upstream_error", failures: 1, others: 1, rounds: 1, isLastTarget: true };

test.each<[where: string, facts: StepFacts, step: ReturnType<typeof nextStep>]>([
  ["after a machine that failed goes to another one", machineFailed, "another machine"],
  ["after the last failover that is allowed", { ...machineFailed, failures: failoversMax }, "another machine"],
  ["after more failures than that", { ...machineFailed, failures: failoversMax + 1 }, "next target"],
  ["after the only machine failed", { ...machineFailed, others: 0 }, "next target"],
  ["whose machines were away waits for them at the last target", nobodyTookIt, "rank again"],
  ["whose machines were away waits at no other target", { ...nobodyTookIt, isLastTarget: false }, "next target"],
  ["whose machines were away waits so many rounds", { ...nobodyTookIt, rounds: roundsMax - 1 }, "rank again"],
  ["whose machines were away waits no more rounds", { ...nobodyTookIt, rounds: roundsMax }, "next target"],
  ["whose machines are full does not wait", { ...nobodyTookIt, code: "server_is_overloaded" }, "next target"],
  ["that failed on a machine does not wait for those away", { ...nobodyTookIt, failures: 1 }, "next target"],
])("a request %s", (_where, facts, step) => {
  expect(nextStep(facts)).toBe(step);
});
