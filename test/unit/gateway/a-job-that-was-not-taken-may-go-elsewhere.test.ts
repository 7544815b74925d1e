import { expect, test } from "vitest";
import { FollowerOnAWire, timing } from "./follower-on-a-wire.ts";

test("a job that its machine has not accepted is sent again when nothing is heard for acceptWaitMs, and given to nobody else while the machine has time", () => {
  const wire = new FollowerOnAWire();
  wire.pass(timing.acceptWaitMs - 50);
  expect(wire.take()).toEqual(["job"]);
  wire.pass(50);
  expect(wire.take()).toEqual(["job"]);
  wire.pass(timing.acceptWaitMs * 2);
  expect(wire.take()).toEqual(["job"]);
  expect(wire.outcomes).toEqual([]);
});

test("a job that its machine has not accepted was not taken when the machine says nothing in its time: it is told so, and is called away", () => {
  const wire = new FollowerOnAWire({ acceptWithinMs: timing.acceptWaitMs * 2 });
  wire.pass(timing.acceptWaitMs * 2 + 50);
  expect(wire.told).toEqual(["not-taken agent_offline"]);
  expect(wire.take().slice(-2)).toEqual(["cancel gave_up", "not reached"]);
});

test("a job that its machine has not accepted is sent once more when nobody is there, shortly after, and was not taken when that is so again", () => {
  const wire = new FollowerOnAWire();
  wire.noResponders();
  expect(wire.take()).toEqual(["job"]);
  wire.pass(timing.retryAfterNobodyMs);
  expect(wire.take()).toEqual(["job"]);
  wire.noResponders();
  expect(wire.told).toEqual(["not-taken agent_offline"]);
  expect(wire.take()).toEqual(["not reached"]);
  wire.accept();
  wire.pass(1_000);
  expect(wire.told).toEqual(["not-taken agent_offline"]);
  expect(wire.take()).toEqual([]);
});

test("a job that its machine has not accepted is offered steadily while its machine may be just behind after an outage, for as long as it has time", () => {
  const wire = new FollowerOnAWire({ acceptWithinMs: timing.lostAfterMs });
  wire.awaited = true;
  const offered: string[] = [];
  for (let count = 0; count < 8; count += 1) {
    wire.noResponders();
    wire.pass(timing.parkRetryMs);
    offered.push(...wire.take());
  }
  expect(offered).toEqual(Array(9).fill("job"));
  wire.awaited = false;
  wire.noResponders();
  expect(wire.told).toEqual(["not-taken agent_offline"]);
});

test.each([
  ["busy", "server_is_overloaded"],
  ["draining", "agent_offline"],
  ["unknown_model", "agent_offline"],
  ["unsupported", "upstream_error"],
  ["malformed", "upstream_error"],
  ["a reason of a later build", "upstream_error"],
])(
  "a job that its machine has not accepted and rejects as %s was not taken, which is %s if nobody else takes it",
  (reason, code) => {
    const wire = new FollowerOnAWire();
    wire.hear("reject", { reason, message: "The queue of 8 is full (queueMax)." });
    expect(wire.told).toEqual([`not-taken ${code}`]);
    expect(wire.take()).toEqual(["job"]);
  },
);

test("a job that its machine has not accepted counts as accepted by any word about it, since the accept itself may be lost", () => {
  const wire = new FollowerOnAWire();
  wire.data(1, "Hello");
  wire.accept("running");
  wire.noResponders();
  wire.hear("reject", { reason: "busy", message: "" });
  expect(wire.told).toEqual(["accepted", "Hello"]);
});

test("a job that its machine has not accepted is not missed in a beat that was on its way before it came", () => {
  const wire = new FollowerOnAWire();
  wire.follower.beat(undefined, wire.nowMs);
  wire.accept();
  expect(wire.told).toEqual(["accepted"]);
});

test("a job that its machine has not accepted ends when the gateway is cut off for too long", () => {
  const wire = new FollowerOnAWire();
  wire.cut();
  wire.pass(timing.lostAfterMs * 4);
  expect(wire.told).toEqual(["fault backend_unavailable"]);
  expect(wire.take()).toEqual(["job"]);
});

test("a job that its machine has not accepted is not sent while the gateway is cut off, and its machine has its whole time afterwards", () => {
  const wire = new FollowerOnAWire({ acceptWithinMs: timing.acceptWaitMs * 2 });
  wire.pass(50);
  wire.take();
  wire.cut();
  wire.pass(timing.lostAfterMs);
  expect(wire.take()).toEqual([]);
  wire.restore();
  wire.pass(timing.acceptWaitMs);
  expect(wire.take()).toEqual(["job"]);
  wire.accept();
  expect(wire.told).toEqual(["accepted"]);
});
