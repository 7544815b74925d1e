import { expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

test("a gateway that no beat finds for gatewayGoneAfterMs is gone: its running and its waiting jobs are cancelled and forgotten, and no others", async () => {
  const { gateway, connectGateway, runtime, jobs, pass, timing } = await agentOnBroker({ slots: 2 });
  await gateway.send();
  const other = await connectGateway().send();
  await gateway.send();
  gateway.connection.cut();
  await pass(timing.gatewayGoneAfterMs);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await pass(timing.beatIntervalMs * 2);
  expect(runtime.chats.map(({ run }) => run.signal.aborted)).toEqual([true, false]);
  expect(jobs.runner.load).toMatchObject({ running: 1, queued: 0 });
  expect([...jobs.rows().values()].flat().map(([job]) => job)).toEqual([other]);
});

test("a gateway that no beat finds for less than gatewayGoneAfterMs keeps its jobs, as often as that may be", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send();
  for (let gap = 0; gap < 3; gap += 1) {
    gateway.connection.cut();
    await pass(timing.gatewayGoneAfterMs - timing.beatIntervalMs);
    gateway.connection.restore();
    await pass(timing.beatIntervalMs * 4);
  }
  await runtime.begun().text("still here").settled();
  expect(runtime.begun().run.signal.aborted).toBe(false);
  expect(gateway.lastOf(id).kind).toBe("data");
});

test("a gateway that no beat finds because the agent itself is cut off is not blamed for that", async () => {
  const { gateway, broker, runtime, pass, timing } = await agentOnBroker();
  await gateway.send();
  broker.cut();
  await pass(timing.gatewayGoneAfterMs * 2);
  broker.restore();
  await pass(timing.beatIntervalMs);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  expect(gateway.beats).toHaveLength(2);
});

test.each([
  [{}, "", 0],
  [{ tunnelled: true, roundTripMs: 400 }, " and 1.3 seconds and a round trip", 1_700],
])(
  "a gateway that gives leases is gone for the agent %o when they stop for gatewayGoneAfterMs%s",
  async (where, _, moreMs) => {
    const { gateway, runtime, jobs, pass, timing } = await agentOnBroker(where);
    await gateway.send();
    await gateway.say({ kind: "lease", gateway: gateway.id });
    await pass(timing.gatewayGoneAfterMs + moreMs);
    expect(runtime.begun().run.signal.aborted).toBe(false);
    await pass(timing.beatIntervalMs);
    expect(runtime.begun().run.signal.aborted).toBe(true);
    expect(jobs.rows().size).toBe(0);
  },
);

test("a gateway that gives leases need not repeat one for a job that comes a moment later, and is held to it none the less", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  await gateway.say({ kind: "lease", gateway: gateway.id });
  await pass(timing.beatIntervalMs * 2);
  await gateway.send();
  await pass(timing.gatewayGoneAfterMs - timing.beatIntervalMs * 2);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await pass(timing.beatIntervalMs * 2);
  expect(runtime.begun().run.signal.aborted).toBe(true);
});

test("a gateway that gives leases has from the agent's reconnect on to give the next one", async () => {
  const { gateway, broker, runtime, pass, timing } = await agentOnBroker();
  await gateway.send();
  await gateway.say({ kind: "lease", gateway: gateway.id });
  broker.cut();
  await pass(timing.gatewayGoneAfterMs * 2);
  broker.restore();
  await pass(timing.gatewayGoneAfterMs - timing.beatIntervalMs);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await pass(timing.beatIntervalMs * 2);
  expect(runtime.begun().run.signal.aborted).toBe(true);
});

test("a gateway that gives leases has given up on an agent that was cut off for cutOffAfterMs, whose runtime works for nobody then", async () => {
  const { gateway, broker, runtime, pass, timing } = await agentOnBroker();
  await gateway.send();
  broker.cut();
  await pass(timing.cutOffAfterMs);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await pass(timing.beatIntervalMs * 2);
  expect(runtime.begun().run.signal.aborted).toBe(true);
});
