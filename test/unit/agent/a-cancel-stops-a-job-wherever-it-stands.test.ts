import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { newToken } from "#shared/protocol/identifiers.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";

const cancelled = { kind: "fault", payload: { code: "cancelled" } };

test("a cancel of a running job aborts the runtime's request at once and ends in one fault, also when the runtime hangs", async () => {
  const { gateway, runtime, jobs } = await agentOnBroker();
  const id = await gateway.send();
  await runtime.begun().text("Hel").settled();
  expect(runtime.begun().run.signal.aborted).toBe(false);
  await gateway.cancel(id);
  expect(runtime.begun().run.signal.aborted).toBe(true);
  await runtime.begun().text("lo").finish().settled();
  expect(gateway.kinds(id)).toEqual(["accept", "data", "fault"]);
  expect(gateway.lastOf(id)).toMatchObject(cancelled);
  expect(jobs.runner.load.running).toBe(0);
});

test("a cancel of a waiting job keeps it from ever running, and lets those behind it move up", async () => {
  const { gateway, runtime } = await agentOnBroker({ slots: 1, queueMax: 5 });
  await gateway.send();
  const id = await gateway.send();
  const behind = await gateway.send();
  await gateway.cancel(id);
  expect(gateway.lastOf(id)).toMatchObject(cancelled);
  await gateway.send({ id: behind });
  expect(gateway.lastOf(behind).payload).toEqual({ state: "queued", position: 1 });
  await runtime.begun().finish().settled();
  await runtime.begun(1).finish().settled();
  expect([runtime.chats.length, gateway.lastOf(behind).kind]).toEqual([2, "end"]);
});

test("a cancel of a job whose body still arrives makes room for another", async () => {
  const { gateway, runtime } = await agentOnBroker({ slots: 1, queueMax: 1 });
  const body = Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "Hi" }] }));
  const inParts = { body, sha256: createHash("sha256").update(body).digest("hex") };
  const id = await gateway.send(inParts);
  await gateway.cancel(id);
  expect(gateway.lastOf(id)).toMatchObject(cancelled);
  await gateway.part(id, 0, body);
  expect(gateway.kinds(id)).toEqual(["accept", "fault"]);
  expect([runtime.chats.length, gateway.kinds(await gateway.send(inParts))]).toEqual([0, ["accept"]]);
});

test("a cancel that comes before its job beats it, for as long as the job may be late", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = newToken();
  await gateway.cancel(id);
  await pass(timing.cancelRememberMs - timing.beatIntervalMs);
  await gateway.send({ id });
  expect(gateway.frames(id)).toMatchObject([cancelled]);
  expect(runtime.chats).toHaveLength(0);
});

test("a cancel that comes again, or after the end, changes nothing", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send();
  await runtime.begun().finish().settled();
  await gateway.cancel(id);
  await gateway.cancel(id);
  expect(gateway.kinds(id)).toEqual(["accept", "data", "end"]);
});
