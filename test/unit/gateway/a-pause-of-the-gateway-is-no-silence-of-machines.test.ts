import { expect, test } from "vitest";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";

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
