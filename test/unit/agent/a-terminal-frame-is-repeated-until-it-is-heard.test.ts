import { expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

async function endedJob() {
  const agent = await agentOnBroker();
  const id = await agent.gateway.send();
  agent.runtime.begun().finish();
  await agent.settle();
  const terminals = (): number => agent.gateway.kinds(id).filter((kind) => kind === "end").length;
  return { ...agent, id, terminals };
}

test("a terminal frame comes at once and then every terminalRepeatMs, always the same", async () => {
  const { gateway, id, pass, timing, terminals } = await endedJob();
  expect(terminals()).toBe(1);
  await pass(timing.terminalRepeatMs * 4);
  expect(terminals()).toBe(5);
  const ends = gateway.frames(id).filter(({ kind }) => kind === "end");
  expect(new Set(ends.map((end) => JSON.stringify(end))).size).toBe(1);
});

test("a terminal frame comes no more when the gateway said that it has it, and the job is forgotten", async () => {
  const { gateway, id, pass, timing, terminals } = await endedJob();
  await pass(timing.terminalRepeatMs);
  expect(gateway.row(id)?.[1]).toBe("ended");
  await gateway.say({ kind: "finish", jobs: ["0".repeat(22), id] });
  const before = [terminals(), gateway.beats.length];
  await pass(timing.terminalRepeatForMs);
  expect([terminals(), gateway.beats.length]).toEqual(before);
});

test("a terminal frame is given up after terminalRepeatForMs", async () => {
  const { gateway, id, pass, timing, terminals } = await endedJob();
  await pass(timing.terminalRepeatForMs);
  expect(gateway.row(id)?.[1]).toBe("ended");
  const before = [terminals(), gateway.beats.length];
  expect(terminals()).toBe(timing.terminalRepeatForMs / timing.terminalRepeatMs + 1);
  await pass(timing.terminalRepeatForMs);
  expect([terminals(), gateway.beats.length]).toEqual(before);
});

test("a job that still runs has no terminal frame to finish", async () => {
  const { gateway, runtime, settle, pass, timing } = await agentOnBroker();
  const id = await gateway.send();
  await gateway.say({ kind: "finish", jobs: [id] });
  await pass(timing.beatIntervalMs);
  expect(gateway.row(id)?.[1]).toBe("prefill");
  runtime.begun().finish();
  await settle();
  expect(gateway.lastOf(id).kind).toBe("end");
});
