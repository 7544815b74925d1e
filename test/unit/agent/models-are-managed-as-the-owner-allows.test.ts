import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { ManageRun } from "../../../services/agent/runtimes/runtime.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { StubRuntime } from "./stub-runtime.ts";

/** A runtime that pulls as a test lets it, and can do nothing else with models. */
class PullingRuntime extends StubRuntime {
  readonly pulls: ManageRun[] = [];
  readonly step = Promise.withResolvers<void>();
  readonly manages = { pull: (run: ManageRun) => this.#pull(run) };

  async #pull(run: ManageRun): Promise<void> {
    this.pulls.push(run);
    run.onProgress({ status: "pulling", completedBytes: 1, totalBytes: 2 });
    await this.step.promise;
    run.signal.throwIfAborted();
    run.onProgress({ status: "success" });
  }
}

const pull = { kind: "manage", shape: "manage-lines", model: "qwen3:8b" } as const;
const asked = (action: string) => ({ ...pull, body: encodeJson({ action }) });

async function managed(manage: readonly ("pull" | "load")[]) {
  const runtime = new PullingRuntime();
  return { ...(await agentOnBroker({ runtime, manage })), pulling: runtime };
}

test("a job that manages models tells how far it has come and takes no slot", async () => {
  const { gateway, pulling, settle, jobs } = await managed(["pull"]);
  const id = await gateway.send(asked("pull"));
  expect(pulling.pulls).toMatchObject([{ action: "pull", model: "qwen3:8b" }]);
  expect(jobs.runner.load).toMatchObject({ running: 0, queued: 0 });
  pulling.step.resolve();
  await settle();
  expect(gateway.kinds(id)).toEqual(["accept", "data", "data", "end"]);
  const said = gateway.frames(id).filter(({ kind }) => kind === "data");
  expect(said.map(({ payload }) => payload).join("")).toBe(
    'j54:{"status":"pulling","completedBytes":1,"totalBytes":2}j20:{"status":"success"}',
  );
});

test.each([
  ["llama3", "unsupported_value", "(stub) cannot load"],
  ["llama3:latest", "unsupported_value", "(stub) cannot load"],
  ["qwen3:8b", "model_not_found", "does not have that model"],
])("a job that manages the model %s where the runtime cannot is refused as %s", async (model, code, message) => {
  const { gateway, settle } = await managed(["load"]);
  const id = await gateway.send({ ...asked("load"), model });
  await settle();
  const payload = { code, message: expect.stringContaining(message) };
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload });
});

test("a job that manages models may take longer than a chat, as long as it comes on", async () => {
  const { gateway, pass, settle, timing } = await managed(["pull"]);
  const id = await gateway.send({ ...asked("pull"), remainingMs: 86_400_000 });
  await pass(timing.manageSilentMs - timing.beatIntervalMs);
  expect(gateway.lastOf(id)).toMatchObject({ kind: "data" });
  await pass(timing.beatIntervalMs * 2);
  await settle();
  expect(gateway.lastOf(id)).toMatchObject({
    kind: "fault",
    payload: { code: "upstream_timeout", message: expect.stringContaining("manageSilentMs") },
  });
});

test("a pull goes on when its client leaves, and is told in presence until after its end", async () => {
  const { gateway, pulling, settle, jobs } = await managed(["pull"]);
  await gateway.cancel(await gateway.send(asked("pull")));
  await settle();
  expect(pulling.pulls[0]?.signal.aborted).toBe(false);
  expect(jobs.runner.load.memory?.pulls).toEqual([
    { model: "qwen3:8b", state: "pulling", status: "pulling", percent: 50, totalMb: 1 },
  ]);
  pulling.step.resolve();
  await settle();
  expect(jobs.runner.load.memory?.pulls).toMatchObject([{ model: "qwen3:8b", state: "done" }]);
});

test("the time that a pull has left is told in presence, by its speed since the first bytes of its file", async () => {
  const { gateway, pulling, pass, jobs } = await managed(["pull"]);
  await gateway.send(asked("pull"));
  const say = (completedBytes: number) =>
    pulling.pulls[0]?.onProgress({ status: "pulling", completedBytes, totalBytes: 100 });
  say(10);
  await pass(3_000);
  say(40);
  expect(jobs.runner.load.memory?.pulls).toMatchObject([{ percent: 40, leftMs: 6_000 }]);
});

test("a pull is joined by whoever asks for the same model, with how far it has come", async () => {
  const { gateway, pulling, settle } = await managed(["pull"]);
  const ids = [await gateway.send(asked("pull")), await gateway.send(asked("pull"))];
  expect(pulling.pulls).toHaveLength(1);
  pulling.step.resolve();
  await settle();
  for (const id of ids) expect(gateway.kinds(id)).toEqual(["accept", "data", "data", "end"]);
});

test("a pull ends for all who wait for it when somebody stops it, and nothing else can be stopped", async () => {
  const { gateway, pulling, settle } = await managed(["pull"]);
  const id = await gateway.send(asked("pull"));
  const stop = await gateway.send(asked("stop"));
  await settle();
  expect(pulling.pulls[0]?.signal.aborted).toBe(true);
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "cancelled" } });
  expect(gateway.lastOf(stop).kind).toBe("end");
  const again = await gateway.send(asked("stop"));
  await settle();
  expect(gateway.lastOf(again)).toMatchObject({ kind: "fault", payload: { code: "model_not_found" } });
});
