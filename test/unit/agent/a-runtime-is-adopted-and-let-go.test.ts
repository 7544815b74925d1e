import { describe, expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { RuntimeWatch } from "../../../services/agent/runtimes/watch-runtime.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { stubModel, StubRuntime } from "./stub-runtime.ts";

const timing = timingAt(1);
const log = createLog({ level: "silent", name: "test" });

/** A watch that finds what `found` holds at the time. */
function watching(found: { runtime: StubRuntime | undefined }) {
  const clock = new TurnableClock();
  let finds = 0;
  const find = async (): Promise<StubRuntime | undefined> => {
    finds += 1;
    return found.runtime;
  };
  const watch = new RuntimeWatch({ find, isStandIn: ({ name }) => name === "stand-in", timing, clock, log });
  const changes: (string | null)[] = [];
  watch.onChange(() => void changes.push(watch.offer?.runtime.name ?? null));
  return { watch, clock, changes, finds: () => finds, poll: () => clock.advanceAwaiting(timing.cataloguePollMs) };
}

describe("a runtime", () => {
  test("that only stands in gives way to another as soon as that is found, and not before", async () => {
    const found: { runtime: StubRuntime | undefined } = { runtime: new StubRuntime({ name: "stand-in" }) };
    const { watch, changes, poll } = watching(found);
    await watch.start();
    found.runtime = undefined;
    await poll();
    expect(changes).toEqual(["stand-in"]);
    found.runtime = new StubRuntime({ name: "real" });
    await poll();
    found.runtime = undefined;
    await poll();
    expect(changes).toEqual(["stand-in", "real"]);
  });

  test("that is there at the start is offered from then on, and told once", async () => {
    const { watch, changes, finds, poll } = watching({ runtime: new StubRuntime() });
    await watch.start();
    for (let round = 0; round < 3; round += 1) await poll();
    expect(watch.offer).toMatchObject({ runtime: { name: "stub" }, catalogue: [stubModel("llama3")] });
    expect([changes, finds()]).toEqual([["stub"], 1]);
  });

  test("that comes later is adopted within one poll", async () => {
    const found: { runtime: StubRuntime | undefined } = { runtime: undefined };
    const { watch, changes, poll } = watching(found);
    await watch.start();
    expect(watch.offer).toBeUndefined();
    await expect(watch.ask()).rejects.toMatchObject({ code: "runtime_offline" });
    found.runtime = new StubRuntime();
    await poll();
    await poll();
    expect(changes).toEqual(["stub"]);
  });

  test("whose models change is told, with another digest", async () => {
    const runtime = new StubRuntime();
    const { watch, changes, poll } = watching({ runtime });
    await watch.start();
    const before = watch.offer?.digest;
    runtime.offered = [stubModel("llama3"), stubModel("qwen3")];
    await poll();
    await poll();
    expect(watch.offer?.catalogue.map(({ id }) => id)).toEqual(["llama3", "qwen3"]);
    expect(watch.offer?.digest).not.toBe(before);
    expect(changes).toEqual(["stub", "stub"]);
  });

  test("that fails once keeps its offer but is not called well; failing on it is let go and found again", async () => {
    const runtime = new StubRuntime();
    const found: { runtime: StubRuntime | undefined } = { runtime };
    const { watch, changes, poll } = watching(found);
    await watch.start();
    const { offered } = runtime;
    runtime.offered = new Error("connect ECONNREFUSED");
    await expect(watch.ask()).rejects.toMatchObject({ code: "runtime_offline" });
    expect(watch.offer).toBeDefined();
    runtime.offered = offered;
    await expect(watch.ask()).resolves.toEqual(offered);
    runtime.offered = new Error("connect ECONNREFUSED");
    await poll();
    await poll();
    await poll();
    expect(changes).toEqual(["stub", null]);
    found.runtime = new StubRuntime({ name: "another" });
    await poll();
    await poll();
    expect(changes).toEqual(["stub", null, "another"]);
    await expect(watch.ask()).resolves.toEqual([stubModel("llama3")]);
  });

  test("is asked once for all who ask at the same time", async () => {
    const { watch, finds } = watching({ runtime: undefined });
    await Promise.allSettled([watch.start(), watch.ask(), watch.ask()]);
    expect(finds()).toBe(1);
    watch.stop();
  });

  test("is watched no more after a stop", async () => {
    const { watch, clock } = watching({ runtime: undefined });
    await watch.start();
    watch.stop();
    expect(clock.timersWaiting).toBe(0);
  });

  test("that takes more jobs at once than the one before starts those that wait", async () => {
    const runtime = new StubRuntime({ slots: 1 });
    const { gateway, watch, settle, jobs } = await agentOnBroker({ runtime, queueMax: 5 });
    for (let count = 0; count < 3; count += 1) await gateway.send();
    expect(jobs.load).toMatchObject({ slots: 1, running: 1, queued: 2 });
    Object.assign(runtime, { slots: 2, offered: [stubModel("llama3"), stubModel("qwen3")] });
    await watch.ask();
    await settle();
    expect(jobs.load).toMatchObject({ slots: 2, running: 2, queued: 1 });
    expect(runtime.chats).toHaveLength(2);
  });
});
