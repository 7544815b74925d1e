import { expect, test } from "vitest";
import { newToken } from "#shared/protocol/identifiers.ts";
import { FollowerOnAWire } from "./follower-on-a-wire.ts";

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
