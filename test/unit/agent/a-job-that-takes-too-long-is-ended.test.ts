import { expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

const timedOut = (limit: string) => ({
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
  expect(gateway.lastOf(id)).toMatchObject(timedOut("10000 ms (partsWaitMs)"));
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
  expect(faults).toMatchObject(ids.map(() => timedOut("600000 ms in all (jobTotalMs)")));
});
