import { expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

test("a beat comes every beatIntervalMs while there are jobs, and not without", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  await pass(timing.beatIntervalMs * 3);
  expect(gateway.beats).toHaveLength(0);
  const id = await gateway.send();
  await pass(timing.beatIntervalMs * 3);
  expect(gateway.beats).toHaveLength(3);
  await runtime.begun().finish().settled();
  await gateway.say({ kind: "finish", jobs: [id] });
  await pass(timing.beatIntervalMs * 3);
  expect(gateway.beats).toHaveLength(3);
});

test("a beat comes half as often while the line is full", async () => {
  const { gateway, jobs, pass, timing } = await agentOnBroker();
  await gateway.send();
  Object.defineProperty(jobs.uplink, "isFull", { get: () => true, set: () => {} });
  await pass(timing.beatIntervalMs * 8);
  expect(gateway.beats).toHaveLength(4);
});

test("a beat says of each job how it stands: its state, its place in the queue and its last frame", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker({ slots: 2, queueMax: 5 });
  const [ended, running, first, second] = [
    await gateway.send(),
    await gateway.send(),
    await gateway.send(),
    await gateway.send({ sha256: "0".repeat(64), bodyBytes: 10 }),
  ];
  const third = await gateway.send();
  await runtime.begun(0).finish().settled();
  await runtime.begun(1).text("a").settled();
  await runtime.begun(1).text("b").settled();
  await pass(timing.beatIntervalMs);
  const rows = [ended, running, first, second, third].map((id) => gateway.row(id));
  expect(rows).toEqual([
    [ended, "ended", 0, expect.any(Number), 2, 0],
    [running, "running", 0, expect.any(Number), 2, 0],
    [first, "prefill", 0, expect.any(Number), 0, 0],
    [second, "receiving", 1, 0, 0, 0],
    [third, "queued", 2, 0, 0, 0],
  ]);
  expect(gateway.beats.at(-1)).toHaveLength(5);
});

test.each([false, true])("a beat shows how many tokens there are of an answer, whole: %s", async (whole) => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send({ whole });
  const shown: unknown[] = [];
  for (const text of ["", "a", "", "b"]) {
    runtime.begun().run.onProgress();
    if (text !== "") await runtime.begun().text(text).settled();
    await pass(timing.beatIntervalMs);
    const [, state, , tokens] = gateway.row(id) ?? [];
    shown.push([state, tokens]);
  }
  expect(shown).toEqual([
    ["prefill", 0],
    ["running", 1],
    ["running", 1],
    ["running", 2],
  ]);
});

test("a beat answers a probe at once", async () => {
  const { gateway } = await agentOnBroker();
  const id = await gateway.send();
  await gateway.say({ kind: "probe", job: id });
  expect(gateway.beats).toHaveLength(1);
  expect(gateway.row(id)?.[1]).toBe("prefill");
});

test("a beat tells each gateway of its own jobs only", async () => {
  const { gateway, connectGateway, pass, timing } = await agentOnBroker({ slots: 2 });
  const other = connectGateway();
  const [here, there] = [await gateway.send(), await other.send()];
  await pass(timing.beatIntervalMs);
  expect(gateway.beats.map((rows) => rows.map(([job]) => job))).toEqual([[here]]);
  expect(other.beats.map((rows) => rows.map(([job]) => job))).toEqual([[there]]);
});
