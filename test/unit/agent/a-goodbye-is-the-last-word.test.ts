import { expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { newEpoch } from "#shared/protocol/identifiers.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { presencePattern, rollcallSubject } from "#shared/protocol/subjects.ts";
import { Announcer } from "../../../services/agent/machine/announce.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { stubDescribed, StubRuntime } from "./stub-runtime.ts";

async function announcing(runtime = new StubRuntime()) {
  const agent = await agentOnBroker({ runtime, queueMax: 7 });
  const { broker, watch, timing, clock, gateway } = agent;
  const jobs = agent.jobs.runner;
  const epoch = newEpoch(clock.wall());
  const announcer = new Announcer({ broker, machine: "gpu-1", epoch, jobs, runtime: watch, timing, clock });
  const told: Presence[] = [];
  gateway.connection.subscribe(presencePattern, ({ data }) => {
    told.push(presence.parse(JSON.parse(Buffer.from(data).toString())));
  });
  announcer.start();
  await agent.settle();
  const states = (): string[] => told.map(({ state }) => state);
  return { ...agent, announcer, told, states, epoch };
}

test("a presence is a whole picture: the machine, its boot, its load and what it offers", async () => {
  const { told, epoch, gateway, pass, timing, watch } = await announcing();
  await gateway.send();
  await gateway.send();
  await pass(timing.presenceIntervalMs);
  const picture = {
    machine: "gpu-1",
    epoch,
    state: "ready",
    runtime: "stub",
    slots: 1,
    queueMax: 7,
    strays: 0,
    scale: 1,
    catalogueDigest: watch.offer?.digest,
    version: packageJson.version,
    wire: 2,
    memory: { totalMb: 100_000, freeMb: 100_000, residents: [] },
  };
  expect(told).toEqual([
    { ...picture, running: 0, queued: 0 },
    { ...picture, running: 1, queued: 1 },
  ]);
});

test("a presence comes each presenceIntervalMs, and at once on a rollcall, a new connection or another offer", async () => {
  const { told, gateway, broker, runtime, watch, settle, pass, timing } = await announcing();
  await pass(timing.presenceIntervalMs * 3);
  expect(told).toHaveLength(4);
  gateway.connection.publish(rollcallSubject, encodeJson(null));
  await settle();
  expect(told).toHaveLength(5);
  broker.cut();
  broker.restore();
  await settle();
  expect(told).toHaveLength(6);
  runtime.offered = [stubDescribed("qwen3")];
  await watch.ask();
  await settle();
  expect(told).toHaveLength(7);
  expect(told.at(-1)?.catalogueDigest).not.toBe(told.at(0)?.catalogueDigest);
});

test("a presence says waiting without a runtime, and draining before the goodbye", async () => {
  const runtime = new StubRuntime();
  const { offered } = runtime;
  runtime.offered = new Error("not there");
  const { announcer, told, states, watch, settle } = await announcing(runtime);
  expect(told[0]).toMatchObject({ state: "waiting", runtime: null, catalogueDigest: "" });
  runtime.offered = offered;
  await watch.ask();
  announcer.startDraining();
  await announcer.sayGoodbye();
  await settle();
  expect(states()).toEqual(["waiting", "ready", "draining", "gone"]);
});

test("a presence comes no more after the goodbye: not by time, rollcall, connection or another offer", async () => {
  const { announcer, states, runtime, watch, gateway, broker, settle, pass, timing } = await announcing();
  await announcer.sayGoodbye();
  await settle();
  gateway.connection.publish(rollcallSubject, encodeJson(null));
  await pass(timing.presenceIntervalMs * 2);
  broker.cut();
  broker.restore();
  runtime.offered = [stubDescribed("qwen3")];
  await watch.ask();
  await settle();
  expect(states()).toEqual(["ready", "gone"]);
});
