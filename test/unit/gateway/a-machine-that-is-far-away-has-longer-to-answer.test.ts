import { expect, test } from "vitest";
import { presence, type Presence, roundTripMsMax } from "#shared/protocol/presence.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

const roundTripMs = 1_200;

function gatewayOfFarMachine(line: Pick<Presence, "tunnelled"> = {}) {
  const gateway = gatewayOnBroker();
  gateway.machine.listen();
  gateway.roster.announced(presenceOf(gateway.machine.name, { roundTripMs, ...line }), gateway.clock.now());
  return gateway;
}

/** What both ends of a tunnel wait for longer, as the documents say. */
const tunnelMs = 1_300;

test("a far machine is offered a job once, and given up, only later by the round trip that its presence tells", async () => {
  const { machine, run, pass, timing } = gatewayOfFarMachine();
  const { told } = await run({ acceptWithinMs: timing.acceptWaitMs * 2 });
  await pass(timing.acceptWaitMs + roundTripMs - 100);
  expect(machine.jobs).toHaveLength(1);
  await pass(timing.acceptWaitMs);
  expect([machine.jobs.length, told]).toEqual([2, []]);
  await pass(300);
  expect(told).toEqual(["not-taken agent_offline"]);
});

test.each([
  ["a far machine", {}, 0],
  ["a machine behind a tunnel", { tunnelled: true as const }, tunnelMs],
])("%s (%o) is suspect later by its round trip, and offline later by that and %i ms", (_, line, moreMs) => {
  const { machine, roster, clock, timing } = gatewayOfFarMachine(line);
  const statusAfter = (ms: number) => roster.find(machine.name, clock.now() + ms)?.status;
  expect(statusAfter(timing.suspectAfterMs + roundTripMs)).toBe("present");
  expect(statusAfter(timing.suspectAfterMs + roundTripMs + 1)).toBe("suspect");
  expect(statusAfter(timing.offlineAfterMs + moreMs + roundTripMs)).toBe("suspect");
  expect(statusAfter(timing.offlineAfterMs + moreMs + roundTripMs + 1)).toBe("offline");
});

test("a job behind a tunnel is lost 1.3 seconds later, and goes to another machine as soon as any other", async () => {
  const { machine, run, pass, timing } = gatewayOfFarMachine({ tunnelled: true });
  const accepted = await run();
  machine.say(accepted.id, "accept", { state: "running" });
  const offered = await run({ acceptWithinMs: timing.acceptWaitMs * 2 });
  await pass(timing.acceptWaitMs * 2 + roundTripMs + 100);
  expect(offered.told).toEqual(["not-taken agent_offline"]);
  await pass(timing.lostAfterMs + tunnelMs - timing.acceptWaitMs * 2 - 200);
  expect(accepted.told).toEqual(["accepted"]);
  await pass(300);
  expect(accepted.told).toEqual(["accepted", "fault agent_disconnected"]);
});

test("a presence with a longer round trip than gateways wait for is not taken", () => {
  expect(presence.safeParse(presenceOf("gpu-1", { roundTripMs: roundTripMsMax })).success).toBe(true);
  expect(presence.safeParse(presenceOf("gpu-1", { roundTripMs: roundTripMsMax + 1 })).success).toBe(false);
});
