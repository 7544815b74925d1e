import { describe, expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

test("a gateway that no beat finds for gatewayGoneAfterMs is gone: its running and its waiting jobs are cancelled and forgotten", async () => {
  const { gateway, runtime, jobs, pass, timing } = await agentOnBroker();
  await gateway.send();
  await gateway.send();
  gateway.connection.cut();
  await pass(timing.gatewayGoneAfterMs);
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await pass(timing.beatIntervalMs * 2);
  expect(runtime.chats.map(({ run }) => run.signal.aborted)).toEqual([true]);
  expect(jobs.runner.load).toMatchObject({ running: 0, queued: 0 });
  expect(jobs.rows().size).toBe(0);
});

test("a gateway that no beat finds takes the jobs of no other gateway with it", async () => {
  const { gateway, connectGateway, runtime, settle, pass, timing } = await agentOnBroker({ slots: 2 });
  const other = connectGateway();
  await gateway.send();
  const id = await other.send();
  gateway.connection.cut();
  await pass(timing.gatewayGoneAfterMs + timing.beatIntervalMs * 2);
  expect(runtime.chats.map(({ run }) => run.signal.aborted)).toEqual([true, false]);
  runtime.begun(1).finish();
  await settle();
  expect(other.lastOf(id).kind).toBe("end");
});

test("a gateway that no beat finds for less than gatewayGoneAfterMs keeps its jobs, as often as that may be", async () => {
  const { gateway, runtime, settle, pass, timing } = await agentOnBroker();
  const id = await gateway.send();
  for (let gap = 0; gap < 3; gap += 1) {
    gateway.connection.cut();
    await pass(timing.gatewayGoneAfterMs - timing.beatIntervalMs);
    gateway.connection.restore();
    await pass(timing.beatIntervalMs * 4);
  }
  runtime.begun().text("still here");
  await settle();
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

describe("a gateway that gives leases", () => {
  test("a gateway that gives leases is gone when they stop for gatewayGoneAfterMs, although the broker still knows it", async () => {
    const { gateway, runtime, jobs, pass, timing } = await agentOnBroker();
    await gateway.send();
    await gateway.say({ kind: "lease", gateway: gateway.id });
    await pass(timing.gatewayGoneAfterMs);
    expect(runtime.begun().run.signal.aborted).toBe(false);
    await pass(timing.beatIntervalMs);
    expect(runtime.begun().run.signal.aborted).toBe(true);
    expect(jobs.rows().size).toBe(0);
  });

  test("a gateway that gives leases is given 1.3 seconds longer, and its round trip, by an agent behind a tunnel", async () => {
    const { gateway, runtime, pass, timing } = await agentOnBroker({ tunnelled: true, roundTripMs: 400 });
    await gateway.send();
    await gateway.say({ kind: "lease", gateway: gateway.id });
    await pass(timing.gatewayGoneAfterMs + 1_300 + 400);
    expect(runtime.begun().run.signal.aborted).toBe(false);
    await pass(timing.beatIntervalMs);
    expect(runtime.begun().run.signal.aborted).toBe(true);
  });

  test("a gateway that gives leases keeps its jobs for as long as it gives them", async () => {
    const { gateway, runtime, pass, timing } = await agentOnBroker();
    await gateway.send();
    for (let lease = 0; lease < 10; lease += 1) {
      await gateway.say({ kind: "lease", gateway: gateway.id });
      await pass(timing.gatewayGoneAfterMs - timing.beatIntervalMs);
    }
    expect(runtime.begun().run.signal.aborted).toBe(false);
  });

  test("need not repeat it for a job that comes a moment later, and is held to it none the less", async () => {
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
});
