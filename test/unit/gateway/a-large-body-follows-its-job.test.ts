import { expect, test } from "vitest";
import { FollowerOnAWire, timing } from "./follower-on-a-wire.ts";

test("a body in parts is sent when the machine says that it receives, and not when it has it already", () => {
  const wire = new FollowerOnAWire({ partsBytes: 600_000 });
  wire.pass(50);
  expect(wire.take()).toEqual(["job"]);
  wire.accept("receiving");
  expect(wire.take()).toEqual(["part 0", "part 1", "part 2"]);
  wire.accept("receiving");
  expect(wire.take()).toEqual([]);
});

test("a body in parts is sent on as it is acknowledged, and again when a part was lost", () => {
  const wire = new FollowerOnAWire({ partsBytes: 600_000 }).accept("receiving");
  wire.take();
  wire.hear("part-ack", { received: 262_144 });
  wire.beat("receiving", 0);
  wire.pass(timing.partRepeatMs);
  expect(wire.take()).toEqual(["part 1", "part 2"]);
  wire.hear("part-ack", { received: 600_000 });
  wire.beat("running", 0);
  wire.pass(timing.partRepeatMs);
  expect(wire.take()).toEqual([]);
});

test("a body in parts is not sent while the gateway is cut off", () => {
  const wire = new FollowerOnAWire({ partsBytes: 600_000 }).accept("receiving");
  wire.take();
  wire.cut();
  wire.pass(timing.partRepeatMs * 2);
  expect(wire.take()).toEqual([]);
  wire.restore();
  expect(wire.take()).toEqual(["part 0", "part 1", "part 2", "attach 1"]);
});
