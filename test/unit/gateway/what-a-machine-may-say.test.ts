import { expect, test } from "vitest";
import { jobKinds } from "#shared/protocol/job.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { FollowerOnAWire } from "./follower-on-a-wire.ts";

test.each(jobKinds)("of a job of kind %s a machine speaks of its owner's leave only where it is asked for", (kind) => {
  const { follower, told } = new FollowerOnAWire({ kind });
  const payload = encodeJson({ code: "insufficient_permissions", message: "not here" });
  follower.frame({ kind: "fault", sequence: 1, outputTokens: 0, payload }, 1);
  expect(told.at(-1)).toBe(kind === "manage" ? "fault insufficient_permissions" : "fault upstream_error");
});

test.each(jobKinds)("of a job of kind %s a machine says nothing of keys", (kind) => {
  const { follower, told } = new FollowerOnAWire({ kind });
  const payload = encodeJson({ code: "key_invalid", message: "begone" });
  follower.frame({ kind: "fault", sequence: 1, outputTokens: 0, payload }, 1);
  expect(told.at(-1)).toBe("fault upstream_error");
});
