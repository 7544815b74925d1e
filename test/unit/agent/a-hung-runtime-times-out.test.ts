import { expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

const timedOut = { kind: "fault", payload: { code: "upstream_timeout" } };

test("a runtime that hangs in the middle of an answer ends it by noProgressMs, while beats go on", async () => {
  const { gateway, runtime, pass, timing, jobs } = await agentOnBroker();
  const id = await gateway.send();
  await runtime.begun().text("Hel").settled();
  await pass(timing.noProgressMs);
  expect(gateway.lastOf(id).kind).toBe("data");
  expect(gateway.beats.length).toBeGreaterThan(100);
  await pass(timing.beatIntervalMs);
  expect(gateway.lastOf(id)).toMatchObject({ ...timedOut, sequence: 2 });
  expect(runtime.begun().run.signal.aborted).toBe(true);
  expect(jobs.runner.load.running).toBe(0);
});

test("a runtime that hangs before its first token has firstTokenMs, and longer as long as it shows that it works", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send();
  await pass(timing.firstTokenMs - 1_000);
  runtime.begun().run.onProgress();
  await pass(timing.noProgressMs * 2);
  expect(gateway.kinds(id)).toEqual(["accept"]);
  await pass(timing.firstTokenMs);
  expect(gateway.kinds(id).slice(0, 2)).toEqual(["accept", "fault"]);
  expect(gateway.lastOf(id)).toMatchObject(timedOut);
});

test("a runtime that hangs in the middle of an answer has firstTokenMs when it says that it reads or loads once more", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send();
  await runtime.begun().text("the first of several answers").settled();
  runtime.begun().run.onProgress("prefill");
  await pass(timing.firstTokenMs);
  expect(gateway.lastOf(id).kind).toBe("data");
  await pass(timing.beatIntervalMs);
  expect(gateway.lastOf(id)).toMatchObject(timedOut);
});

test("a runtime that hangs is given no more time than the gateway has left", async () => {
  const { gateway, pass } = await agentOnBroker();
  const id = await gateway.send({ remainingMs: 5_000 });
  await pass(5_500);
  expect(gateway.lastOf(id)).toMatchObject(timedOut);
});

const timedOutBy = (limit: string) => ({
  kind: "fault",
  payload: { code: "upstream_timeout", message: expect.stringContaining(limit) },
});

test("a job whose body stops arriving is given up after partsWaitMs", async () => {
  const { gateway, pass, timing } = await agentOnBroker();
  const id = await gateway.send({ sha256: "0".repeat(64), bodyBytes: 10 });
  await pass(timing.partsWaitMs / 2);
  await gateway.part(id, 0, Buffer.from("abc"));
  await pass(timing.partsWaitMs);
  expect(gateway.kinds(id)).toEqual(["accept", "part-ack"]);
  await pass(timing.beatIntervalMs);
  expect(gateway.lastOf(id)).toMatchObject(timedOutBy("10000 ms (partsWaitMs)"));
});

test("a job that waits its turn is not blamed for its silence, but has jobTotalMs in all", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const ids = [await gateway.send(), await gateway.send({ remainingMs: 9_000_000 })];
  for (let passedMs = 0; passedMs < timing.jobTotalMs; passedMs += timing.jobTotalMs / 3) {
    expect(ids.map((id) => gateway.kinds(id))).toEqual([["accept"], ["accept"]]);
    runtime.begun().run.onProgress("prefill");
    await pass(timing.jobTotalMs / 3);
  }
  await pass(timing.beatIntervalMs);
  const faults = ids.map((id) => gateway.frames(id).find(({ kind }) => kind === "fault"));
  expect(faults).toMatchObject(ids.map(() => timedOutBy("600000 ms in all (jobTotalMs)")));
});
