import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";

const tooMuch = () => new Fault("server_is_overloaded", { message: "too much" });

test("how many jobs a runtime takes at once is learnt at nobody's cost: the job that was refused waits, and runs when another has ended", async () => {
  const { gateway, runtime, jobs } = await agentOnBroker({ slots: 3, queueMax: 5 });
  const ids = [await gateway.send(), await gateway.send(), await gateway.send(), await gateway.send()];
  await runtime.begun(2).fail(tooMuch()).settled();
  expect(jobs.runner.load).toMatchObject({ running: 2, queued: 2 });
  expect(ids.map((id) => gateway.kinds(id))).toEqual(ids.map(() => ["accept"]));
  await runtime.begun(0).finish().settled();
  expect(runtime.chats).toHaveLength(4);
  expect(jobs.runner.load).toMatchObject({ running: 2, queued: 1 });
  await runtime.begun(3).finish().settled();
  expect(gateway.lastOf(ids[2] ?? "")).toMatchObject({ kind: "end" });
});

test("how many jobs a runtime takes at once is tried again with one job more after ten seconds", async () => {
  const { gateway, runtime, jobs, pass } = await agentOnBroker({ slots: 3, queueMax: 5 });
  for (let sent = 0; sent < 4; sent += 1) await gateway.send();
  await runtime.begun(2).fail(tooMuch()).settled();
  await pass(9_000);
  expect(jobs.runner.load.running).toBe(2);
  await pass(1_500);
  expect(jobs.runner.load.running).toBe(3);
});

test("how many jobs a runtime takes at once is told to the caller when nothing else of ours runs there", async () => {
  const { gateway, runtime } = await agentOnBroker({ slots: 3 });
  const id = await gateway.send();
  await runtime.begun(0).fail(tooMuch()).settled();
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "server_is_overloaded" } });
});

test("how many jobs a runtime takes at once does not make an answer that has begun begin again", async () => {
  const { gateway, runtime } = await agentOnBroker({ slots: 3 });
  const [, id] = [await gateway.send(), await gateway.send()];
  await runtime.begun(1).text("a word").settled();
  await runtime.begun(1).fail(tooMuch()).settled();
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "server_is_overloaded" } });
  expect(runtime.chats).toHaveLength(2);
});
