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

test("a terminal frame comes no more when the gateway said that it has it, and the job is forgotten", async () => {
  const { gateway, id, pass, timing, terminals } = await endedJob();
  await pass(timing.terminalRepeatMs);
  expect(gateway.row(id)?.[1]).toBe("ended");
  await gateway.say({ kind: "finish", jobs: ["0".repeat(22), id] });
  const before = [terminals(), gateway.beats.length];
  await pass(timing.terminalRepeatForMs);
  expect([terminals(), gateway.beats.length]).toEqual(before);
});

test("a terminal frame comes at once and then every terminalRepeatMs, always the same, until terminalRepeatForMs", async () => {
  const { gateway, id, pass, timing, terminals } = await endedJob();
  await pass(timing.terminalRepeatForMs);
  expect(gateway.row(id)?.[1]).toBe("ended");
  const before = [terminals(), gateway.beats.length];
  expect(terminals()).toBe(timing.terminalRepeatForMs / timing.terminalRepeatMs + 1);
  await pass(timing.terminalRepeatForMs);
  expect([terminals(), gateway.beats.length]).toEqual(before);
});

test("a job that still runs has no terminal frame to finish", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send();
  await gateway.say({ kind: "finish", jobs: [id] });
  await pass(timing.beatIntervalMs);
  expect(gateway.row(id)?.[1]).toBe("prefill");
  await runtime.begun().finish().settled();
  expect(gateway.lastOf(id).kind).toBe("end");
});
