import { expect, test } from "vitest";
import { jobKinds } from "#shared/protocol/job.ts";
import { encodeJson, faultReasonCharactersMax } from "#shared/protocol/frame-payload.ts";
import { rejectFault, toldCharactersMax } from "../../../services/gateway/jobs/machine-fault.ts";
import { FollowerOnAWire } from "./follower-on-a-wire.ts";

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
