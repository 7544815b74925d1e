import { expect, test } from "vitest";
import { FollowerOnAWire, timing } from "./follower-on-a-wire.ts";

test("an accepted job whose machine is silent is probed, steadily and not at every tick, and then lost", () => {
  const wire = new FollowerOnAWire().accept();
  wire.take();
  wire.pass(timing.probeAfterMs);
  expect(wire.take()).toEqual([]);
  wire.pass(timing.lostAfterMs - timing.probeAfterMs);
  const probes = wire.take();
  expect(new Set(probes)).toEqual(new Set(["probe"]));
  expect(probes).toHaveLength((timing.lostAfterMs - timing.probeAfterMs) / timing.parkRetryMs);
  wire.pass(50);
  expect(wire.take()).toEqual(["not reached", "cancel gave_up"]);
  expect(wire.told).toEqual(["accepted", "fault agent_disconnected"]);
});

test("an accepted job waits for its answer as long as it takes while beats tell of it", () => {
  const wire = new FollowerOnAWire().accept();
  wire.take();
  for (let count = 0; count < 100; count += 1) {
    wire.pass(timing.beatIntervalMs);
    wire.beat("prefill", 0);
  }
  expect([wire.take(), wire.outcomes]).toEqual([[], []]);
});

test("an accepted job is not lost by the broker's word that nobody is there: its machine may be about to come back", () => {
  const wire = new FollowerOnAWire();
  wire.pass(timing.acceptWaitMs);
  expect(wire.take()).toEqual(["job", "job"]);
  wire.accept();
  for (let count = 0; count < 5; count += 1) wire.noResponders();
  wire.pass(timing.lostAfterMs);
  expect(wire.outcomes).toEqual([]);
  wire.pass(50);
  expect(wire.told.at(-1)).toBe("fault agent_disconnected");
});

test("an accepted job is not lost while the gateway itself is cut off, and its silence starts anew when that is over", () => {
  const wire = new FollowerOnAWire().accept();
  wire.take();
  wire.cut();
  wire.pass(timing.lostAfterMs * 2);
  wire.restore();
  wire.pass(timing.lostAfterMs);
  expect(wire.outcomes).toEqual([]);
  expect(wire.take().filter((said) => said !== "probe")).toEqual(["attach 1"]);
  wire.data(1, "Hello");
  expect(wire.told).toEqual(["accepted", "Hello"]);
});

test("an accepted job ends when the gateway is cut off for too long, and its machine is not blamed for that", () => {
  const wire = new FollowerOnAWire().accept();
  wire.take();
  wire.cut();
  wire.pass(timing.lostAfterMs * 4);
  expect(wire.told).toEqual(["accepted", "fault backend_unavailable"]);
  expect(wire.take()).toEqual([]);
});

test("an accepted job that takes longer than it has in all ends, also when its machine does not say so", () => {
  const wire = new FollowerOnAWire({ remainingMs: 5_000 }).accept();
  for (let count = 0; count < 16; count += 1) {
    wire.pass(timing.beatIntervalMs);
    wire.beat("running", 0);
  }
  expect(wire.outcomes).toEqual([]);
  wire.pass(100);
  expect(wire.told).toEqual(["accepted", "fault upstream_timeout"]);
  expect(wire.take().at(-1)).toBe("cancel gave_up");
});
