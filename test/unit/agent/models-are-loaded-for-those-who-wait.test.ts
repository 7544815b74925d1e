import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { ModelMemory } from "#shared/placing/make-room.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { LoadingRuntime } from "./loading-runtime.ts";
import { placingAgent } from "./placing-agent.ts";

test("a request for a model that is not in memory waits for its load, which the agent itself begins, and is answered then", async () => {
  const { gateway, runtime, load, answer, pass, jobs } = await placingAgent({ small: 5_000 });
  const job = await gateway.send({ model: "small" });
  expect(runtime.steps).toEqual(["load small"]);
  expect(runtime.chats).toHaveLength(0);
  await pass(500);
  expect(gateway.row(job)?.[1]).toBe("loading");
  // A model of 5,000 MB is expected to take 6 s.
  expect(jobs.runner.loading).toEqual({ model: "small", percent: 8, leftMs: 5_500 });
  await load("small");
  expect(runtime.chats).toHaveLength(1);
  await answer(0);
  expect(gateway.lastOf(job).kind).toBe("end");
});

test("a request for a model that is not in memory loads the model although every client left meanwhile, and although its gateway is gone", async () => {
  const { gateway, runtime, load } = await placingAgent({ small: 5_000 });
  await gateway.cancel(await gateway.send({ model: "small" }));
  await load("small");
  expect(runtime.loaded).toEqual(["small"]);
});

test("a request for a model that is not in memory is told after loadWaitMs how far the load is, which goes on", async () => {
  const { gateway, runtime, load, pass, timing } = await placingAgent({ large: 400_000 }, { totalMb: 400_000 });
  const job = await gateway.send({ model: "large" });
  await pass(timing.loadWaitMs);
  expect(gateway.lastOf(job)).toMatchObject({
    kind: "fault",
    payload: { code: "model_loading", retryAfterSeconds: 101, message: expect.stringContaining("74 %") },
  });
  await load("large");
  expect(runtime.loaded).toEqual(["large"]);
});

test("a request for a model that is not in memory takes free memory first, and then the place of the model that is the least likely to come back", async () => {
  const { gateway, runtime, load, answer, pass } = await placingAgent({ a: 10_000, b: 10_000, c: 10_000 });
  let begun = 0;
  for (const model of ["a", "a", "a", "b"]) {
    await gateway.send({ model });
    await load(model);
    await answer(begun++);
  }
  expect(runtime.steps).toEqual(["load a", "load b"]);
  await pass(60_000);
  await gateway.send({ model: "c" });
  expect(runtime.steps.slice(2)).toEqual(["unload b", "load c"]);
});

test("a request for a model that is not in memory does not take the place of a model that began to answer while the memory was read", async () => {
  const { gateway, runtime, memory, load, answer, pass, settle } = await placingAgent({ one: 20_000, two: 20_000 });
  await gateway.send({ model: "one" });
  await load("one");
  await answer(0);
  await pass(60_000);
  const reading = Promise.withResolvers<ModelMemory>();
  memory.read = () => reading.promise;
  await gateway.send({ model: "two" });
  await gateway.send({ model: "one" });
  reading.resolve(runtime.memory);
  await settle();
  expect([runtime.steps, runtime.chats.length]).toEqual([["load one"], 2]);
  await answer(1);
  expect(runtime.steps).toEqual(["load one", "unload one", "load two"]);
});

test("a request for a model that is not in memory lets a model that answers finish, and keeps new requests for it back until then", async () => {
  const { gateway, runtime, load, answer, pass } = await placingAgent({ big: 20_000, huge: 22_000 });
  await gateway.send({ model: "big" });
  await load("big");
  await gateway.send({ model: "huge" });
  await pass(200_000);
  await gateway.send({ model: "big" });
  await pass(1_000);
  expect([runtime.steps, runtime.chats.length]).toEqual([["load big"], 1]);
  await answer(0);
  expect(runtime.steps).toEqual(["load big", "unload big", "load huge"]);
});

test("a model that cannot be loaded fails all who wait with the cause, and is not tried again for each request", async () => {
  const { gateway, runtime, load, pass } = await placingAgent({ small: 5_000 });
  runtime.broken.set("small", new Fault("upstream_error", { message: "The file is damaged." }));
  const jobs = [await gateway.send({ model: "small" }), await gateway.send({ model: "small" })];
  await load("small");
  for (const job of jobs) {
    expect(gateway.lastOf(job)).toMatchObject({
      kind: "fault",
      payload: { code: "upstream_error", message: expect.stringContaining("The file is damaged.") },
    });
  }
  const later = await gateway.send({ model: "small" });
  expect([gateway.lastOf(later).kind, runtime.steps]).toEqual(["fault", ["load small"]]);
  await pass(5_000);
  await gateway.send({ model: "small" });
  expect(runtime.steps).toEqual(["load small", "load small"]);
});

test("a model that cannot be loaded is tried once more without the models that nobody uses", async () => {
  const { gateway, runtime, load, answer, pass, jobs } = await placingAgent({ a: 10_000, b: 10_000 });
  await gateway.send({ model: "a" });
  await load("a");
  await answer(0);
  // Something else takes memory, and nobody tells of it.
  runtime.reallyMb = 15_000;
  await pass(60_000);
  const job = await gateway.send({ model: "b" });
  await load("b");
  await load("b");
  await answer(1);
  expect([runtime.steps, gateway.lastOf(job).kind]).toEqual([["load a", "load b", "unload a", "load b"], "end"]);
  runtime.put("b", "unload");
  await pass(2_000);
  expect(jobs.runner.load.memory?.counts).toMatchObject({ loads: 2, unloads: { request: 1, keep: 0, other: 1 } });
});

test("a machine whose owner does not let the agent place models loads nothing by itself", async () => {
  const runtime = new LoadingRuntime({ sizes: { small: 5_000 }, totalMb: 24_000 });
  const { gateway } = await agentOnBroker({ runtime });
  await gateway.send({ model: "small" });
  expect([runtime.steps, runtime.chats.length]).toEqual([[], 1]);
});

test("the facts of an agent's memory name the models in it, what each takes there and whether it is in use, and the load under way", async () => {
  const { gateway, runtime, load, answer, pass, jobs } = await placingAgent({ one: 5_000, two: 9_000 });
  await gateway.send({ model: "one" });
  await pass(3_000);
  expect(jobs.runner.load.memory).toMatchObject({
    totalMb: 24_000,
    residents: [],
    loading: { model: "one", percent: 50 },
  });
  await load("one");
  const one = { model: "one", memoryMb: 5_000, returnMs: expect.any(Number) };
  const inUse = [{ ...one, inUse: true }];
  const { counts, ...memory } = jobs.runner.load.memory ?? {};
  expect(memory).toEqual({ totalMb: 24_000, freeMb: 19_000, isPlaced: true, residents: inUse });
  expect(counts).toMatchObject({ loads: 1, loadMs: 3_000, failures: 0 });
  await answer(0);
  runtime.put("two", "load");
  await pass(2_000);
  expect(jobs.runner.load.memory).toMatchObject({
    freeMb: 10_000,
    residents: [one, { model: "two", memoryMb: 9_000 }],
  });
});

test("the facts of an agent's memory tell of a load that takes longer than expected that a tenth of its time is still to come", async () => {
  const { gateway, pass, jobs } = await placingAgent({ one: 5_000 });
  await gateway.send({ model: "one" });
  await pass(60_000);
  expect(jobs.runner.load.memory?.loading).toEqual({ model: "one", percent: 90, leftMs: 6_000 });
});

test("the facts of an agent's memory leave the catalogue's digest as it is while models come and go, and tell it what a load was measured to take", async () => {
  const { gateway, runtime, load, answer, pass, watch } = await placingAgent({ one: 5_000 });
  const before = watch.offer?.digest;
  runtime.put("one", "load");
  await pass(2_000);
  expect(watch.offer?.catalogue[0]?.loaded).toBe(true);
  expect(watch.offer?.digest).toBe(before);
  runtime.put("one", "unload");
  await pass(2_000);
  await gateway.send({ model: "one" });
  await pass(2_500);
  await load("one");
  await answer(0);
  await pass(2_000);
  expect(watch.offer?.catalogue[0]).toMatchObject({ memory_mb: 5_000, load_ms: 2_500 });
  expect(watch.offer?.digest).not.toBe(before);
});

test("the facts of an agent's memory fit into a presence although the machine has many models with long names in memory", async () => {
  const sizes = Object.fromEntries(
    Array.from({ length: 50 }, (_, place) => [`模型 ${place} ${"名".repeat(200)}`, 100]),
  );
  const { runtime, pass, jobs } = await placingAgent(sizes);
  for (const model of Object.keys(sizes)) runtime.put(model, "load");
  await pass(2_000);
  const { memory } = jobs.runner.load;
  expect(memory?.residents.length).toBeGreaterThan(3);
  expect(Buffer.byteLength(JSON.stringify(memory))).toBeLessThan(8_000);
});
