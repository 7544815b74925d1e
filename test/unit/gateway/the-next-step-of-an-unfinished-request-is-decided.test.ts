import { expect, test } from "vitest";
import {
  afterFault,
  type FaultFacts,
  failoversMax,
  roundsMax,
} from "../../../services/gateway/requests/after-fault.ts";

const nobodyTookIt: FaultFacts = {
  code: "agent_offline",
  taken: false,
  hasSaid: false,
  isLeaving: false,
  lacksEffort: false,
  canGoOn: false,
  failures: 0,
  others: 0,
  rounds: 1,
  isLastTarget: true,
};
const failed: FaultFacts = { ...nobodyTookIt, code: "upstream_error", taken: true, failures: 1, others: 1 };
const brokeOff: FaultFacts = { ...failed, hasSaid: true, others: 0, canGoOn: true };

test.each<[where: string, facts: FaultFacts, step: ReturnType<typeof afterFault>]>([
  ["after a machine that failed goes to another one", failed, "another machine"],
  ["after the last failover that is allowed", { ...failed, failures: failoversMax }, "another machine"],
  ["after more failures than that", { ...failed, failures: failoversMax + 1 }, "next target"],
  ["after the only machine failed", { ...failed, others: 0 }, "next target"],
  ["that is wrong itself ends", { ...failed, code: "context_length_exceeded" }, "end"],
  ["that took too long ends", { ...failed, code: "upstream_timeout" }, "end"],
  ["that an operator cancelled ends", { ...failed, code: "cancelled_by_operator" }, "end"],
  ["of which a part came and that an operator cancelled ends", { ...brokeOff, code: "cancelled_by_operator" }, "end"],
  ["whose client has left ends", { ...failed, isLeaving: true }, "end"],
  [
    "whose model lacks its effort runs without",
    { ...failed, code: "unsupported_value", lacksEffort: true },
    "without effort",
  ],
  ["whose machines were away waits for them at the last target", nobodyTookIt, "rank again"],
  ["whose machines were away waits at no other target", { ...nobodyTookIt, isLastTarget: false }, "next target"],
  ["whose machines were away waits so many rounds", { ...nobodyTookIt, rounds: roundsMax - 1 }, "rank again"],
  ["whose machines were away waits no more rounds", { ...nobodyTookIt, rounds: roundsMax }, "next target"],
  ["whose machines are full does not wait", { ...nobodyTookIt, code: "server_is_overloaded" }, "next target"],
  ["that failed on a machine does not wait for those away", { ...nobodyTookIt, failures: 1 }, "next target"],
  ["whose answer broke off goes on at a machine that can", brokeOff, "go on elsewhere"],
  ["whose answer lost a part goes on at a machine that can", { ...brokeOff, code: "stream_gap" }, "go on elsewhere"],
  ["whose answer broke off ends where no machine can go on", { ...brokeOff, canGoOn: false }, "end"],
  ["whose answer broke off ends once nobody took the rest", { ...brokeOff, taken: false }, "end"],
  ["whose answer broke off ends with its client", { ...brokeOff, isLeaving: true }, "end"],
])("a request %s", (_where, facts, step) => {
  expect(afterFault(facts)).toBe(step);
});
