import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { end, FollowerOnAWire, timing } from "./follower-on-a-wire.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { jobKinds } from "#shared/protocol/job.ts";
import { encodeJson, faultReasonCharactersMax } from "#shared/protocol/frame-payload.ts";
import { rejectFault, toldCharactersMax } from "../../../services/gateway/jobs/machine-fault.ts";

test("an answer is passed on piece by piece as it comes, and ends once", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.data(2, "lo");
  wire.hear("end", end, 3);
  wire.hear("end", end, 3);
  wire.data(4, "late");
  expect(wire.told).toEqual(["accepted", "Hel", "lo", "end"]);
  expect(wire.outcomes).toEqual([{ kind: "end", end, receivedBytes: 5, heldBack: false }]);
  expect(wire.take()).toEqual(["job", "finish"]);
});

test("an answer ends as a fault that says what the machine said", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.hear("fault", { code: "context_length_exceeded", message: "Too long.", param: "messages" }, 2);
  expect(wire.outcomes).toMatchObject([
    { kind: "fault", fault: { code: "context_length_exceeded", message: "Too long.", param: "messages" } },
  ]);
  expect(wire.take()).toEqual(["job", "finish"]);
});

test.each([
  ["a code that this build does not know", { code: "gpu_on_fire", message: "Hot." }, "upstream_error"],
  ["what is no fault at all", { what: "?" }, "agent_disconnected"],
  ["that the machine cancelled by itself", { code: "cancelled", message: "" }, "agent_disconnected"],
])("an answer that ends by %s is a fault all the same", (_, payload, code) => {
  const wire = new FollowerOnAWire().accept();
  wire.hear("fault", payload, 1);
  expect(wire.told).toEqual(["accepted", `fault ${code}`]);
});

test("an answer whose end cannot be read is no success", () => {
  const wire = new FollowerOnAWire().accept();
  wire.hear("end", { finishReason: "because" }, 1);
  expect(wire.told).toEqual(["accepted", "fault agent_disconnected"]);
});

test("an answer is passed on in order, without a repeat and without a hole, whatever comes; what is missing is asked for", () => {
  const arrivals = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 30 });
  fc.assert(
    fc.property(arrivals, (sequences) => {
      const wire = new FollowerOnAWire().accept();
      const asked: string[] = [];
      let next = 1;
      for (const sequence of sequences) {
        if (sequence > next) asked.push(`attach ${next}`);
        if (sequence === next) next += 1;
        wire.data(sequence, `${sequence}`);
        wire.pass(timing.parkRetryMs);
      }
      const passed = Array.from({ length: next - 1 }, (_, place) => `${place + 1}`);
      expect(wire.told.slice(0, next)).toEqual(["accepted", ...passed]);
      const said = wire.take();
      for (const attach of asked) expect(said).toContain(attach);
    }),
  );
});

test("an answer whose last frames were lost is noticed by the beat that tells of them, and whole when they come again", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.beat("running", 1);
  expect(wire.take()).toEqual(["job"]);
  wire.beat("ended", 3);
  expect(wire.take()).toEqual(["attach 2"]);
  wire.data(2, "lo");
  wire.hear("end", end, 3);
  expect(wire.told).toEqual(["accepted", "Hel", "lo", "end"]);
});

test("an answer is asked for once more each parkRetryMs while nothing of what is missing comes, and given up after lostAfterMs", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.data(3, "there");
  for (let beat = 0; beat < timing.lostAfterMs / timing.beatIntervalMs; beat += 1) {
    wire.pass(timing.beatIntervalMs);
    wire.beat("running", 3);
  }
  expect(wire.outcomes).toEqual([]);
  const attaches = wire.take().filter((said) => said === "attach 2").length;
  expect(attaches).toBeGreaterThan(timing.lostAfterMs / timing.parkRetryMs / 2);
  expect(attaches).toBeLessThan((timing.lostAfterMs / timing.parkRetryMs) * 2);
  wire.pass(timing.beatIntervalMs);
  expect(wire.told).toEqual(["accepted", "Hel", "fault stream_gap"]);
  expect(wire.take().at(-1)).toBe("cancel gave_up");
});

test("an answer is asked for anew after each of the gateway's reconnects", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.cut();
  wire.pass(timing.lostAfterMs);
  wire.take();
  wire.restore();
  expect(wire.take()).toEqual(["attach 2"]);
  wire.data(2, "lo");
  wire.hear("end", end, 3);
  expect(wire.told).toEqual(["accepted", "Hel", "lo", "end"]);
});

test.each([
  ["stream_gap", "stream_gap", ["cancel gave_up"]],
  ["job_unknown", "agent_disconnected", []],
])("an answer that its machine cannot give again, by %s, ends as %s", (told, code, said) => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.data(3, "there");
  wire.take();
  wire.hear("fault", { code: told, message: "gone" });
  expect(wire.told).toEqual(["accepted", "Hel", `fault ${code}`]);
  expect(wire.take()).toEqual(said);
});

test("an answer of a job that its machine does not have any more has broken off", () => {
  const wire = new FollowerOnAWire().accept();
  wire.follower.beat(undefined, wire.nowMs);
  expect(wire.told).toEqual(["accepted", "fault agent_disconnected"]);
});

test.each([
  ["client_closed", "client_closed"],
  ["slow_client", "slow_client"],
  ["shutting_down", "gave_up"],
] as const)("an answer that nobody wants any more, by %s, is cancelled at the machine", (code, reason) => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, "Hel");
  wire.follower.cancel(new Fault(code, { message: "Enough." }));
  wire.data(2, "lo");
  wire.follower.cancel(new Fault(code, { message: "Enough." }));
  wire.pass(timing.lostAfterMs * 2);
  expect(wire.told).toEqual(["accepted", "Hel", `fault ${code}`]);
  expect(wire.take()).toEqual(["job", `cancel ${reason}`]);
});

const resumes = newToken();
const moved = { code: "job_moved", message: "The client resumes its answer at another gateway." };

test.each([
  ["the request that made the answer", undefined],
  ["an earlier request that resumed it", newToken()],
])("a request that resumes an answer goes on when a move from %s arrives late", (_, movedFrom) => {
  const wire = new FollowerOnAWire({ resumes });
  wire.hear("fault", { ...moved, movedFrom });
  wire.accept("running");
  wire.hear("fault", { ...moved, movedFrom });
  wire.data(1, "One.");
  expect(wire.told).toEqual(["accepted", "One."]);
});

test("a request that resumes an answer ends when the answer moved from itself", () => {
  const wire = new FollowerOnAWire({ resumes }).accept("running");
  wire.hear("fault", { ...moved, movedFrom: resumes });
  expect(wire.told).toEqual(["accepted", "fault client_closed"]);
});

test("a request that made an answer ends when a client resumes it elsewhere", () => {
  const wire = new FollowerOnAWire().accept("running");
  wire.hear("fault", moved);
  expect(wire.told).toEqual(["accepted", "fault client_closed"]);
});

test.each(jobKinds)(
  "a machine reports insufficient_permissions of a job of kind %s only where permission is asked for",
  (kind) => {
    const { follower, told } = new FollowerOnAWire({ kind });
    const payload = encodeJson({ code: "insufficient_permissions", message: "not here" });
    follower.frame({ kind: "fault", sequence: 1, outputTokens: 0, payload }, 1);
    expect(told.at(-1)).toBe(kind === "manage" ? "fault insufficient_permissions" : "fault upstream_error");
  },
);

test.each(jobKinds)("a machine cannot report a fault of keys for a job of kind %s", (kind) => {
  const { follower, told } = new FollowerOnAWire({ kind });
  const payload = encodeJson({ code: "key_invalid", message: "begone" });
  follower.frame({ kind: "fault", sequence: 1, outputTokens: 0, payload }, 1);
  expect(told.at(-1)).toBe("fault upstream_error");
});

/** The fault that a follower makes of this fault frame. */
function faultOf(payload: object) {
  const { follower, outcomes } = new FollowerOnAWire();
  follower.frame({ kind: "fault", sequence: 1, outputTokens: 0, payload: encodeJson(payload) }, 1);
  const [outcome] = outcomes;
  return outcome?.kind === "fault" ? outcome.fault : undefined;
}

test("the reason of a machine's fault is one short line without secrets, and no log has it unless it is asked for", () => {
  const message = "The runtime failed.";
  const key = `trunkline_${"a".repeat(12)}_${"b".repeat(38)}`;
  const fault = faultOf({ code: "upstream_error", message, reason: `out\n\u001b[2Jof memory ${key}` });
  expect(fault).toMatchObject({ code: "upstream_error", message, told: "out [2Jof memory [key]", reason: undefined });
  const tooLong = "x".repeat(faultReasonCharactersMax + 1);
  const cut = faultOf({ code: "upstream_error", message: tooLong });
  expect(cut).toMatchObject({ told: "x".repeat(toldCharactersMax), reason: undefined });
  const copies = [cut?.with({ retryAfterSeconds: 1 }), cut?.withFieldOf([[/^$/, "stop"]])];
  for (const copy of copies) expect(copy).toMatchObject({ told: cut?.told, message: tooLong, reason: undefined });
});

test("the message of a machine's refusal may quote its request, and is no reason", () => {
  const refusal = { code: "invalid_value", message: "'stop' holds my secret." };
  expect(faultOf(refusal)).toMatchObject({ message: refusal.message, told: undefined, reason: undefined });
  expect(faultOf({ ...refusal, reason: "its grammar" })).toMatchObject({ told: "its grammar", reason: undefined });
  for (const reason of ["busy", "malformed"] as const) {
    expect(rejectFault({ reason, message: "my secret" })).toMatchObject({ told: "my secret", reason: undefined });
  }
});
