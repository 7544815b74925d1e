import { expect, test } from "vitest";
import type { JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { StubRuntime } from "./stub-runtime.ts";

test("a job is rejected as busy when slots and queue are full, and named is the limit", async () => {
  const { gateway, runtime } = await agentOnBroker({ slots: 1, queueMax: 1 });
  await gateway.send();
  await gateway.send();
  const id = await gateway.send();
  expect(gateway.frames(id)).toEqual([
    { kind: "reject", sequence: 0, payload: { reason: "busy", message: expect.stringMatching(/1 .*queueMax/) } },
  ]);
  expect(runtime.chats).toHaveLength(1);
});

test("a job that was rejected may come again later, when there is room", async () => {
  const { gateway, runtime } = await agentOnBroker({ slots: 1, queueMax: 0 });
  await gateway.send();
  const id = await gateway.send();
  await runtime.begun().finish().settled();
  await gateway.send({ id });
  expect(gateway.kinds(id)).toEqual(["reject", "accept"]);
});

test.each<[string, Partial<JobHead>, string]>([
  ["a model that it does not offer", { model: "mistral" }, "unknown_model"],
  ["no model", { model: undefined }, "unknown_model"],
])("a job is rejected that asks for %s", async (_, fields, reason) => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send(fields);
  expect(gateway.frames(id)).toMatchObject([{ kind: "reject", payload: { reason } }]);
  expect(runtime.chats).toHaveLength(0);
});

test("a job is rejected that asks for a model while no runtime answers", async () => {
  const runtime = new StubRuntime();
  runtime.offered = new Error("not there");
  const { gateway } = await agentOnBroker({ runtime });
  const id = await gateway.send();
  expect(gateway.lastOf(id)).toMatchObject({ kind: "reject", payload: { reason: "unknown_model" } });
  const models = await gateway.send({ kind: "models" });
  expect(gateway.lastOf(models)).toMatchObject({ kind: "fault", payload: { code: "runtime_offline" } });
});

test("a job is rejected that comes when the agent is about to stop", async () => {
  const { gateway, jobs, settle } = await agentOnBroker();
  void jobs.drain(new AbortController().signal);
  await settle();
  for (const kind of ["chat", "models"] as const) {
    const id = await gateway.send({ kind });
    expect(gateway.frames(id)).toMatchObject([{ kind: "reject", payload: { reason: "draining" } }]);
  }
});

test("a job is rejected whose request has a part that this agent does not know: it is never run with that dropped", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const body = { messages: [{ role: "user", content: "Hi" }], brand_new_field: 1 };
  const id = await gateway.send({ body: Buffer.from(JSON.stringify(body)) });
  expect(gateway.kinds(id)).toEqual(["accept", "fault"]);
  expect(gateway.lastOf(id).payload).toMatchObject({ code: "unsupported_parameter", param: "brand_new_field" });
  expect(runtime.chats).toHaveLength(0);
});

test("a job is rejected that is so large that the agent would receive too much at once, until another of those is over", async () => {
  const { gateway } = await agentOnBroker({ queueMax: 10 });
  const large = { bodyBytes: limits.jobBodyBytesMax, sha256: "0".repeat(64) };
  const ids: string[] = [];
  for (let bytes = 0; bytes < limits.receivingBytesMax; bytes += large.bodyBytes) ids.push(await gateway.send(large));
  expect(ids.map((id) => gateway.kinds(id))).toEqual(ids.map(() => ["accept"]));
  const refused = await gateway.send(large);
  expect(gateway.lastOf(refused)).toMatchObject({ kind: "reject", payload: { reason: "busy" } });
  await gateway.cancel(ids[0] ?? "");
  expect(gateway.kinds(await gateway.send(large))).toEqual(["accept"]);
});

test("a job is rejected that would be one more than an agent holds at once", async () => {
  const { gateway } = await agentOnBroker({ queueMax: 2 * limits.jobsPerAgentMax });
  const ids = await Promise.all(Array.from({ length: limits.jobsPerAgentMax }, () => gateway.send()));
  expect(gateway.kinds(ids.at(-1) ?? "")).toEqual(["accept"]);
  const refused = await gateway.send();
  expect(gateway.lastOf(refused)).toMatchObject({
    kind: "reject",
    payload: { reason: "busy", message: expect.stringContaining("jobsPerAgentMax") },
  });
});
