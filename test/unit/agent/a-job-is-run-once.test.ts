import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { replySubject } from "#shared/protocol/subjects.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { StubRuntime, stubModel } from "./stub-runtime.ts";
import { recordsIn } from "../../harness/answer-payload.ts";

test("a job is accepted at once, answered as the runtime speaks, and ends in one terminal frame", async () => {
  const { gateway, runtime, pass } = await agentOnBroker();
  const id = await gateway.send();
  expect(gateway.frames(id)).toEqual([{ kind: "accept", sequence: 0, payload: { state: "prefill" } }]);
  runtime.begun().text("Hel");
  await pass(100);
  await runtime.begun().text("lo").settled();
  runtime.begun().finish();
  await pass(0);
  expect(gateway.frames(id).slice(1)).toEqual([
    { kind: "data", sequence: 1, payload: "t3:Hel" },
    { kind: "data", sequence: 2, payload: "t2:lo" },
    { kind: "data", sequence: 3, payload: expect.stringContaining('"kind":"finish"') },
    {
      kind: "end",
      sequence: 4,
      payload: {
        finishReason: "stop",
        usage: { promptTokens: 5, completionTokens: 2 },
        timings: { queuedMs: 0, firstTokenMs: 0, totalMs: 100 },
      },
    },
  ]);
});

test("a job that comes twice is accepted twice and run once, while it waits, runs and is over", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const first = await gateway.send();
  const waiting = await gateway.send();
  for (const id of [first, waiting]) await gateway.send({ id });
  expect(gateway.kinds(first)).toEqual(["accept", "accept"]);
  expect(gateway.lastOf(waiting).payload).toEqual({ state: "queued", position: 1 });
  expect(runtime.chats).toHaveLength(1);
  await runtime.begun().finish().settled();
  await gateway.send({ id: first });
  expect(gateway.kinds(first)).toEqual(["accept", "accept", "data", "end", "accept", "end"]);
  expect(runtime.chats).toHaveLength(2);
});

test("a job that comes again when it was finished and forgotten is not run either", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send();
  await runtime.begun().finish().settled();
  await gateway.say({ kind: "finish", jobs: [id] });
  await gateway.send({ id });
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "cancelled" } });
  expect(runtime.chats).toHaveLength(1);
});

test("a job that fails in the runtime ends in its fault, with what it said before, and frees its slot", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const [failing, next] = [await gateway.send(), await gateway.send()];
  await runtime.begun().text("Hel").settled();
  await runtime
    .begun()
    .fail(new Fault("context_length_exceeded", { message: "Too long.", param: "messages" }))
    .settled();
  expect(gateway.kinds(failing)).toEqual(["accept", "data", "fault"]);
  expect(gateway.lastOf(failing)).toMatchObject({
    sequence: 2,
    payload: { code: "context_length_exceeded", message: "Too long.", param: "messages" },
  });
  await runtime.begun(1).finish().settled();
  expect(gateway.lastOf(next).kind).toBe("end");
});

test("a job whose runtime throws what is no fault tells nothing of it", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send();
  await runtime.begun().fail(new Error("connect ECONNREFUSED 10.0.0.7:11434")).settled();
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "internal_error" } });
  expect(JSON.stringify(gateway.frames(id))).not.toContain("10.0.0.7");
});

test("a job for the catalogue is answered with it, also when all slots and the queue are taken", async () => {
  const { gateway, runtime } = await agentOnBroker({ runtime: new StubRuntime(), queueMax: 0 });
  await gateway.send();
  const id = await gateway.send({ kind: "models", body: new Uint8Array() });
  expect(gateway.kinds(id)).toEqual(["accept", "data", "end"]);
  expect(JSON.parse(recordsIn(Buffer.from(String(gateway.frames(id)[1]?.payload)))[0]?.text ?? "")).toEqual([
    stubModel("llama3"),
  ]);
  expect(runtime.chats).toHaveLength(1);
});

test("a job is only taken with a reply subject that is its own, of this machine", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const { id: of } = gateway;
  const id = newToken();
  for (const reply of [
    replySubject({ gateway: of, machine: "gpu-2", job: id }),
    replySubject({ gateway: of, machine: "gpu-1", job: newToken() }),
    "tl1.presence.gpu-1",
    "tl1.rollcall",
  ]) {
    await gateway.send({ id, reply });
  }
  expect(runtime.chats).toHaveLength(0);
  await gateway.send({ id });
  expect(runtime.chats).toHaveLength(1);
});
