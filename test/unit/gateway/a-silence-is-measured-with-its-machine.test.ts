import { expect, test } from "vitest";
import { FollowerOnAWire, timing } from "./follower-on-a-wire.ts";
import { presence, type Presence, roundTripMsMax } from "#shared/protocol/presence.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";
import { Fault } from "#shared/fault/fault.ts";
import { RefusedEfforts } from "../../../services/gateway/requests/refused-efforts.ts";
import { JobRunner } from "../../../services/gateway/requests/run-job.ts";
import { requestOfATest } from "./request-of-a-test.ts";
import { faultHeaders } from "../../../services/gateway/http/answer-faults.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

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

const roundTripMs = 1_200;

function gatewayOfFarMachine(line: Pick<Presence, "tunnelled"> = {}) {
  const gateway = gatewayOnBroker();
  gateway.machine.listen();
  gateway.roster.announced(presenceOf(gateway.machine.name, { roundTripMs, ...line }), gateway.clock.now());
  return gateway;
}

/** The time that both ends of a tunnel wait longer, as the documents say. */
const tunnelMs = 1_300;

test("a far machine is offered a job once, and given up, only later by the round trip that its presence tells", async () => {
  const { machine, run, pass } = gatewayOfFarMachine();
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
  const { machine, roster, clock } = gatewayOfFarMachine(line);
  const statusAfter = (ms: number) => roster.find(machine.name, clock.now() + ms)?.status;
  expect(statusAfter(timing.suspectAfterMs + roundTripMs)).toBe("present");
  expect(statusAfter(timing.suspectAfterMs + roundTripMs + 1)).toBe("suspect");
  expect(statusAfter(timing.offlineAfterMs + moreMs + roundTripMs)).toBe("suspect");
  expect(statusAfter(timing.offlineAfterMs + moreMs + roundTripMs + 1)).toBe("offline");
});

test("a job behind a tunnel is lost 1.3 seconds later, and goes to another machine as soon as any other", async () => {
  const { machine, run, pass } = gatewayOfFarMachine({ tunnelled: true });
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

test("a client that asks for a known model just after the gateway has its broker back is told so and to come back in a second, later of the machine and in five", async () => {
  const { open: jobs, roster, broker, clock, pass } = gatewayOnBroker();
  const { breakers, placements, ranking, log } = fleetOfAGateway({ roster, clock });
  const refusedEfforts = new RefusedEfforts(clock);
  const runner = new JobRunner({ ranking, breakers, placements, refusedEfforts, jobs, timing, clock, log });
  const request = requestOfATest(clock);
  const { signal } = new AbortController();
  const told = async (): Promise<[string, string | undefined]> => {
    const asked = runner.assertTaker(request.work, request, signal);
    const fault = Fault.from(await asked.then(() => undefined).catch((thrown: unknown) => thrown));
    return [fault.code, faultHeaders(fault)["retry-after"]];
  };
  broker.cut();
  broker.restore();
  expect(await told()).toEqual(["backend_unavailable", "1"]);
  await pass(timing.offlineAfterMs);
  expect(await told()).toEqual(["agent_offline", "5"]);
});

test("a gateway that stood still knows it when it reads what came meanwhile, before any of its timers runs", async () => {
  const { machine, open, roster, run, pass, settle, clock } = gatewayOnBroker();
  machine.listen();
  const job = await run();
  machine.say(job.id, "accept", { state: "running" });
  await pass(timing.acceptWaitMs);
  expect(open.line.wasAway).toBe(false);
  clock.standStill(timing.lostAfterMs + 300);
  machine.say(job.id, "fault", { code: "cancelled", message: "The gateway is gone.", usage: null }, 1);
  await settle();
  expect(job.told).toEqual(["accepted", "fault agent_disconnected"]);
  expect(open.line.wasAway).toBe(true);
  expect(roster.find(machine.name, clock.now())?.status).toBe("present");
});

test("a request that is the first thing a gateway reads after it stood still finds every machine", () => {
  const { machine, open, roster, clock } = gatewayOnBroker();
  clock.standStill(timing.offlineAfterMs + 300);
  expect(roster.find(machine.name, clock.now())?.status).toBe("offline");
  open.assertConnection();
  expect(roster.find(machine.name, clock.now())?.status).toBe("present");
  expect(open.line.wasAway).toBe(true);
});
