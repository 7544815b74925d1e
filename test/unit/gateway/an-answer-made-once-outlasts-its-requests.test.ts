import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { OwnIdempotencyRecords } from "../../../services/gateway/jobs/idempotency-records.ts";
import { AnswerMadeOnce } from "../../../services/gateway/requests/made-once.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const name = { keyId: "key", name: "n" };
const neverWaits = (): Promise<void> => Promise.reject(new Error("the request waits"));

function requests(clock = new TurnableClock(), idempotencyRecords = new OwnIdempotencyRecords(clock)) {
  const parts = { idempotencyRecords, clock, timing: timingAt(1) };
  return (owner: string) => new AnswerMadeOnce(name, { owner, digest: "d" }, parts);
}

test("an answer that is made once outlasts a request that lost the broker or its client, once a machine has the answer", async () => {
  const once = requests()("one");
  await once.take(neverWaits);
  expect(once.outlasts("backend_unavailable")).toBe(false);
  await once.madeBy({ machine: "attic", job: "j" });
  const outcomes = ["backend_unavailable", "client_closed", "agent_disconnected", "answer_not_found", "ok"] as const;
  expect(outcomes.map((outcome) => once.outlasts(outcome))).toEqual([true, true, false, false, false]);
});

test("a request that an older gateway placed, which takes no turn, is taken over at once", async () => {
  const clock = new TurnableClock();
  const idempotencyRecords = new OwnIdempotencyRecords(clock);
  await idempotencyRecords.put(name, { owner: "old", digest: "d", machine: "attic", job: "j" }, { forMs: 1_000 });
  const repeat = requests(clock, idempotencyRecords)("two");
  expect(await repeat.take(neverWaits)).toMatchObject({ machine: "attic", job: "j" });
});
