import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import type { LookResult } from "../../../services/agent/models/detect.ts";
import { RuntimeWatch } from "../../../services/agent/models/watch-runtimes.ts";
import type { DescribedModel } from "../../../services/agent/runtimes/runtime.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { stubDescribed, stubModel, StubRuntime } from "./stub-runtime.ts";

const timing = timingAt(1);
const log = createLog({ level: "silent", name: "test" });

/** A location, and what a test puts there. */
class Location {
  readonly location: string;
  here: LookResult;
  looks = 0;
  constructor(location: string, here: LookResult = "nothing") {
    this.location = location;
    this.here = here;
  }
  async look(): Promise<LookResult> {
    this.looks += 1;
    return this.here;
  }
}

function watching(sources: readonly Location[], standIn?: () => StubRuntime) {
  const clock = new TurnableClock();
  const watch = new RuntimeWatch({ sources, standIn, firstSeen: () => 0, timing, clock, log });
  const changes: (string | null)[] = [];
  watch.onChange(() => void changes.push(watch.offer?.names ?? null));
  const poll = async (times = 1): Promise<void> => {
    for (let at = 0; at < times; at += 1) await clock.advanceAwaiting(timing.cataloguePollMs);
  };
  return { watch, clock, changes, poll, ids: () => watch.offer?.catalogue.map(({ id }) => id) };
}

test("a runtime that only stands in gives way to another as soon as that is found, and does not come back", async () => {
  const location = new Location("one");
  const { watch, changes, poll } = watching([location], () => new StubRuntime({ name: "stand-in" }));
  await watch.start();
  await poll();
  expect(changes).toEqual(["stand-in"]);
  const real = new StubRuntime({ name: "real" });
  location.here = real;
  await poll(2);
  location.here = "nothing";
  real.offered = new Error("connect ECONNREFUSED");
  await poll(3);
  expect(changes).toEqual(["stand-in", "real", null]);
});

test("a runtime that fails once keeps its offer but is not called well; failing on it is let go and found again", async () => {
  const runtime = new StubRuntime();
  const location = new Location("one", runtime);
  const { watch, changes, poll } = watching([location]);
  await watch.start();
  const { offered } = runtime;
  runtime.offered = new Error("connect ECONNREFUSED");
  await expect(watch.ask()).rejects.toMatchObject({ code: "runtime_offline" });
  expect(watch.offer).toBeDefined();
  runtime.offered = offered;
  await expect(watch.ask()).resolves.toEqual([stubModel("llama3")]);
  runtime.offered = new Error("connect ECONNREFUSED");
  await poll(3);
  expect(changes).toEqual(["stub", null]);
  location.here = new StubRuntime({ name: "another" });
  await poll(2);
  expect(changes).toEqual(["stub", null, "another"]);
  expect(runtime.closed).toBe(true);
  await expect(watch.ask()).resolves.toEqual([stubModel("llama3", "another")]);
});

test("a runtime that lists its models in another order offers the same, and with other models another digest", async () => {
  const runtime = new StubRuntime({ models: ["a", "b"] });
  const { watch, poll, changes, ids } = watching([new Location("one", runtime)]);
  await watch.start();
  const before = watch.offer?.digest;
  runtime.offered = [stubDescribed("b"), stubDescribed("a")];
  await poll(2);
  expect([changes, watch.offer?.digest]).toEqual([["stub"], before]);
  runtime.offered = [stubDescribed("b"), stubDescribed("c")];
  await poll(2);
  expect([changes, ids()]).toEqual([
    ["stub", "stub"],
    ["b", "c"],
  ]);
  expect(watch.offer?.digest).not.toBe(before);
});

test("a runtime that is another kind than before is adopted in its place, though it answers all the time", async () => {
  const location = new Location("one", new StubRuntime({ name: "mlx-lm" }));
  const { watch, poll, changes } = watching([location]);
  await watch.start();
  location.here = new StubRuntime({ name: "vllm" });
  await poll(32);
  expect(changes).toEqual(["mlx-lm", "vllm"]);
});

test("a runtime that was taken for another kind once, since it was busy, is kept", async () => {
  const known = new StubRuntime({ name: "lm-studio" });
  const location = new Location("one", known);
  const { watch, poll, changes } = watching([location]);
  await watch.start();
  const mistaken = new StubRuntime({ name: "openai" });
  location.here = mistaken;
  await poll(30);
  expect([location.looks, mistaken.closed]).toEqual([2, true]);
  location.here = known;
  await poll(40);
  expect([changes, known.closed]).toEqual([["lm-studio"], false]);
});

test("a runtime that hangs holds up no other that is found at the same time", async () => {
  const hung = new StubRuntime({ name: "hung" });
  hung.catalogue = () => new Promise(() => undefined);
  const late = new Location("b");
  const { watch, clock, changes, poll } = watching([new Location("a", hung), late]);
  const starting = watch.start();
  await clock.advanceAwaiting(timing.runtimeAnswerMs);
  await starting;
  late.here = new StubRuntime({ name: "well" });
  await poll();
  expect(changes).toEqual(["well"]);
});

test("a runtime whose list comes late is offered meanwhile, and let go only after a longer silence", async () => {
  const runtime = new StubRuntime();
  const { watch, clock, changes, ids, poll } = watching([new Location("one", runtime)]);
  await watch.start();
  const lists: ((models: readonly DescribedModel[]) => void)[] = [];
  runtime.catalogue = () => new Promise((resolve) => void lists.push(resolve));
  await poll(3);
  const asking = watch.ask();
  await clock.advanceAwaiting(timing.runtimeAnswerMs);
  await expect(asking).resolves.toEqual([stubModel("llama3")]);
  lists[0]?.([stubDescribed("qwen3")]);
  await poll(2);
  expect([ids(), lists.length]).toEqual([["qwen3"], 2]);
  await poll(timing.runtimeSilentMs / timing.cataloguePollMs + 1);
  expect(changes).toEqual(["stub", "stub", null]);
});

test("a runtime whose list fails while its jobs flow keeps its models, and loses them when they no longer flow", async () => {
  const runtime = new StubRuntime();
  const { gateway, watch, pass, timing: pace } = await agentOnBroker({ runtime });
  await gateway.send();
  const poll = async (times: number): Promise<void> => {
    for (let at = 0; at < times; at += 1) await pass(pace.cataloguePollMs);
  };
  runtime.offered = new Error("the server is busy");
  for (let at = 0; at < 5; at += 1) {
    await runtime.begun().text("on and on ").settled();
    await poll(3);
  }
  expect(watch.offer?.names).toBe("stub");
  await poll(pace.runtimeSilentMs / pace.cataloguePollMs + 3);
  expect(watch.offer).toBeUndefined();
});

test("a runtime may be what something else turns into, which is asked ever more seldom", async () => {
  const location = new Location("one", "something-else");
  const { watch, poll, changes } = watching([location]);
  await watch.start();
  await poll(100);
  expect(location.looks).toBeLessThan(10);
  location.here = new StubRuntime();
  await poll(31);
  expect(changes).toEqual(["stub"]);
});

test("a runtime is watched no more after a stop, and closed", async () => {
  const runtime = new StubRuntime();
  const { watch, clock } = watching([new Location("one", runtime)]);
  await watch.start();
  await watch.stop();
  expect([clock.timersWaiting, runtime.closed]).toEqual([0, true]);
});

test("a runtime that takes more jobs at once than the one before starts those that wait", async () => {
  const runtime = new StubRuntime({ slots: 1 });
  const { gateway, watch, settle, jobs, pass, timing: pace } = await agentOnBroker({ runtime, queueMax: 5 });
  for (let count = 0; count < 3; count += 1) await gateway.send();
  expect(jobs.runner.load).toMatchObject({ slots: 1, running: 1, queued: 2 });
  Object.assign(runtime, { slots: 2, offered: [stubDescribed("llama3"), stubDescribed("qwen3")] });
  await watch.ask();
  await settle();
  await pass(pace.beatIntervalMs);
  expect(jobs.runner.load).toMatchObject({ slots: 2, running: 2, queued: 1 });
  expect(runtime.chats).toHaveLength(2);
});

test("the same model at two runtimes keeps its ids while the runtimes come and go", async () => {
  const ollama = new StubRuntime({ name: "ollama", models: ["qwen3:8b", "phi"] });
  const vllm = new StubRuntime({ name: "vllm", models: ["qwen3:8b", "phi"] });
  const { watch, ids, poll } = watching([new Location("a", ollama), new Location("b", vllm)]);
  await watch.start();
  const { offered } = ollama;
  ollama.offered = new Error("connect ECONNREFUSED");
  await poll(2);
  expect(ids()).toEqual(["phi:vllm", "qwen3:8b-vllm"]);
  ollama.offered = offered;
  await poll(2);
  expect(ids()).toEqual(["phi", "qwen3:8b", "phi:vllm", "qwen3:8b-vllm"]);
  expect(watch.offer?.byId.get("qwen3:8b-vllm")).toMatchObject({ ownId: "qwen3:8b", runtime: { name: "vllm" } });
});

test("the same model at two runtimes is told apart also between two runtimes of the same kind", async () => {
  const locations = ["a", "b", "c"].map(
    (location) => new Location(location, new StubRuntime({ name: "vllm", models: ["m"] })),
  );
  const { watch, ids } = watching(locations);
  await watch.start();
  expect(ids()).toEqual(["m", "m:vllm", "m:vllm-2"]);
});
