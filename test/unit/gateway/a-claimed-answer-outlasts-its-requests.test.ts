import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { OwnClaims } from "../../../services/gateway/jobs/answer-claims.ts";
import { OnceClaim } from "../../../services/gateway/requests/made-once.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const name = { keyId: "key", name: "n" };
const neverWaits = (): Promise<void> => Promise.reject(new Error("the request waits"));

function requests(clock = new TurnableClock(), answerClaims = new OwnClaims(clock)) {
  const parts = { answerClaims, clock, timing: timingAt(1) };
  return (owner: string) => new OnceClaim(name, { owner, digest: "d" }, parts);
}

test("a claim outlasts a request that lost the broker or its client, once a machine has the answer", async () => {
  const claim = requests()("one");
  await claim.take(neverWaits);
  expect(claim.outlasts("backend_unavailable")).toBe(false);
  await claim.placed({ machine: "attic", job: "j" });
  const outcomes = ["backend_unavailable", "client_closed", "agent_disconnected", "answer_not_found", "ok"] as const;
  expect(outcomes.map((outcome) => claim.outlasts(outcome))).toEqual([true, true, false, false, false]);
});

test("a request that an older gateway placed, which takes no turn, is taken over at once", async () => {
  const clock = new TurnableClock();
  const answerClaims = new OwnClaims(clock);
  await answerClaims.put(name, { owner: "old", digest: "d", machine: "attic", job: "j" }, { forMs: 1_000 });
  const repeat = requests(clock, answerClaims)("two");
  expect(await repeat.take(neverWaits)).toMatchObject({ machine: "attic", job: "j" });
});
