import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { OwnClaims } from "../../../services/gateway/jobs/answer-claims.ts";
import { OnceClaim } from "../../../services/gateway/api/made-once.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const name = { keyId: "key", name: "n" };
const signal = new AbortController().signal;

function requests() {
  const clock = new TurnableClock();
  const parts = { answerClaims: new OwnClaims(clock), clock, timing: timingAt(1) };
  return (owner: string) => new OnceClaim(name, { owner, digest: "d" }, parts);
}

test("a claim outlasts a request that lost the broker or its client, once a machine has the answer", async () => {
  const claim = requests()("one");
  await claim.take(signal);
  expect(claim.outlasts("backend_unavailable")).toBe(false);
  await claim.placed({ machine: "attic", job: "j" });
  const outcomes = ["backend_unavailable", "client_closed", "agent_disconnected", "answer_not_found", "ok"] as const;
  expect(outcomes.map((outcome) => claim.outlasts(outcome))).toEqual([true, true, false, false, false]);
});

test("a claim that a repeat joined outlasts that repeat too, and leads the next one to the same machine", async () => {
  const requestOf = requests();
  const first = requestOf("one");
  await first.take(signal);
  await first.placed({ machine: "attic", job: "j" });
  const repeat = requestOf("two");
  await repeat.take(signal);
  expect(repeat.outlasts("client_closed")).toBe(true);
  expect(await requestOf("three").take(signal)).toMatchObject({ machine: "attic", job: "j" });
});
