import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { RefusedEfforts } from "../../../services/gateway/requests/refused-efforts.ts";
import { JobRunner } from "../../../services/gateway/requests/run-job.ts";
import { requestOfATest } from "./request-of-a-test.ts";
import { faultHeaders } from "../../../services/gateway/http/answer-faults.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

test("a client that asks for a known model just after the gateway has its broker back is told so and to come back in a second, later of the machine and in five", async () => {
  const { open: jobs, roster, broker, clock, timing, pass } = gatewayOnBroker();
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
  const { machine, open, roster, run, pass, settle, clock, timing } = gatewayOnBroker();
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
  const { machine, open, roster, clock, timing } = gatewayOnBroker();
  clock.standStill(timing.offlineAfterMs + 300);
  expect(roster.find(machine.name, clock.now())?.status).toBe("offline");
  open.assertConnection();
  expect(roster.find(machine.name, clock.now())?.status).toBe("present");
  expect(open.line.wasAway).toBe(true);
});
