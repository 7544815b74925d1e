import { expect, test } from "vitest";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import { Fault } from "#shared/fault/fault.ts";
import { placingAgent } from "./placing-agent.ts";

/** An agent that is told which models to keep in a memory of 24,000 MB. */
async function keepingAgent(sizes: Readonly<Record<string, number>>, manage: readonly ManageAction[] = []) {
  const agent = await placingAgent(sizes, { manage });
  const keep = async (...models: string[]): Promise<void> => {
    agent.jobs.control({ kind: "keep", models });
    await agent.settle();
  };
  const keeps = () => agent.jobs.runner.load.memory?.keeps;
  return { ...agent, keep, keeps };
}

test("a model that is kept is loaded without a request, and told of with its state", async () => {
  const { runtime, keep, load, keeps } = await keepingAgent({ one: 5_000 });
  await keep("one");
  expect([runtime.steps, keeps()]).toEqual([["load one"], [{ model: "one", state: "loading" }]]);
  await load("one");
  expect(keeps()).toEqual([{ model: "one", state: "loaded" }]);
});

test("a model that is kept makes no room for a request, which waits, until it is kept no more", async () => {
  const { gateway, runtime, keep, load, pass, jobs } = await keepingAgent({ kept: 20_000, other: 20_000 });
  await keep("kept");
  await load("kept");
  await pass(300_000);
  await gateway.send({ model: "other" });
  await pass(200_000);
  expect(runtime.steps).toEqual(["load kept"]);
  expect(jobs.runner.load.memory?.residents).toMatchObject([{ model: "kept", isKept: true }]);
  await keep();
  await pass(1_000);
  expect(runtime.steps).toEqual(["load kept", "unload kept", "load other"]);
});

test("a model that is kept takes the place of a model that nobody uses, and not of one that answers or that requests wait for", async () => {
  const { gateway, runtime, keep, load, answer, pass, keeps } = await keepingAgent({ kept: 20_000, other: 20_000 });
  await gateway.send({ model: "other" });
  await load("other");
  await keep("kept");
  await pass(200_000);
  expect(runtime.steps).toEqual(["load other"]);
  expect(keeps()).toMatchObject([{ model: "kept", state: "waits" }]);
  await answer(0);
  await pass(60_000);
  expect(runtime.steps).toEqual(["load other", "unload other", "load kept"]);
});

test("a model that is kept stays out for ten minutes once somebody else unloaded it, and comes back then", async () => {
  const { runtime, keep, load, pass, keeps } = await keepingAgent({ one: 5_000 });
  await keep("one");
  await load("one");
  await pass(2_000);
  runtime.put("one", "unload");
  await pass(590_000);
  expect(runtime.steps).toEqual(["load one"]);
  expect(keeps()).toEqual([{ model: "one", state: "suspended", why: expect.stringMatching(/comes back in 1 min/) }]);
  await pass(15_000);
  expect(runtime.steps).toEqual(["load one", "load one"]);
});

test("a model that is kept comes back at once when its runtime was started anew", async () => {
  const { runtime, keep, load, pass } = await keepingAgent({ one: 5_000 });
  await keep("one");
  await load("one");
  await pass(2_000);
  runtime.isAway = true;
  await pass(1_000);
  runtime.put("one", "unload");
  runtime.isAway = false;
  await pass(3_000);
  expect(runtime.steps).toEqual(["load one", "load one"]);
});

test("a model that is kept is held by its runtime although somebody else loaded it, who would let go of it", async () => {
  const { runtime, keep, load, pass, keeps } = await keepingAgent({ one: 5_000 });
  runtime.put("one", "load");
  await pass(2_000);
  await keep("one");
  await load("one");
  await pass(5_000);
  expect(runtime.steps).toEqual(["load one"]);
  expect(keeps()).toEqual([{ model: "one", state: "loaded" }]);
});

test("a model that is kept is told as missing where the owner lets nothing be pulled", async () => {
  const { runtime, keep, pass, keeps } = await keepingAgent({ one: 5_000 });
  await keep("new");
  await pass(5_000);
  expect(runtime.steps).toEqual([]);
  expect(keeps()).toMatchObject([{ model: "new", state: "missing", why: expect.stringContaining("pulled") }]);
});

test("a model that is kept is tried again after a growing while when it could not be loaded, and told with the cause", async () => {
  const { runtime, keep, load, pass, keeps } = await keepingAgent({ one: 5_000 });
  runtime.broken.set("one", new Fault("upstream_error", { message: "out of memory" }));
  await keep("one");
  await load("one");
  await pass(1_000);
  expect(keeps()).toMatchObject([{ model: "one", state: "failed", why: expect.stringContaining("out of memory") }]);
  expect(runtime.steps).toEqual(["load one"]);
  await pass(5_000);
  expect(runtime.steps).toEqual(["load one", "load one"]);
});

test("a model that is kept is named in presence beside fifteen others with long names, if need be without the reason", async () => {
  const names = Array.from({ length: 16 }, (_, place) => `model-${place}-`.padEnd(140, "x"));
  const { keep, keeps } = await keepingAgent(Object.fromEntries(names.map((id) => [id, 100])));
  await keep(...names);
  expect(keeps()?.map(({ model }) => model)).toEqual(names);
});
