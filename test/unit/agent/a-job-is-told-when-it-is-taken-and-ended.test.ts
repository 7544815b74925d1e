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

const acceptHoldMs = 10;

test("an acceptance is not told of a job that is answered at once", async () => {
  const { gateway, runtime, pass } = await agentOnBroker({ acceptHoldMs });
  const id = await gateway.send();
  await runtime.begun().text("Hello").finish().settled();
  await pass(acceptHoldMs * 3);
  expect(gateway.kinds(id)).toEqual(["data", "end"]);
});

test("an acceptance is told after the moment of a job that says nothing yet", async () => {
  const { gateway, runtime, pass } = await agentOnBroker({ slots: 2, acceptHoldMs });
  const first = await gateway.send();
  await pass(acceptHoldMs - 1);
  const second = await gateway.send();
  expect([gateway.kinds(first), gateway.kinds(second)]).toEqual([[], []]);
  await pass(acceptHoldMs);
  expect([gateway.kinds(first), gateway.kinds(second)]).toEqual([["accept"], ["accept"]]);
  runtime.begun().finish();
  await pass(acceptHoldMs * 3);
  expect(gateway.kinds(first)).toEqual(["accept", "data", "end"]);
});

test("an acceptance is told at once of a job that has to wait for its turn, with its place", async () => {
  const { gateway } = await agentOnBroker({ slots: 1, acceptHoldMs });
  await gateway.send();
  const waiting = await gateway.send();
  expect(gateway.frames(waiting)).toMatchObject([{ kind: "accept", payload: { state: "queued", position: 1 } }]);
});

test("an acceptance is told at once of a body that comes in parts, and to whoever sends a job again", async () => {
  const { gateway } = await agentOnBroker({ slots: 2, acceptHoldMs });
  const inParts = await gateway.send({ sha256: "0".repeat(64), bodyBytes: 10 });
  expect(gateway.frames(inParts)).toMatchObject([{ kind: "accept", payload: { state: "receiving" } }]);
  const id = await gateway.send();
  await gateway.send({ id });
  expect(gateway.kinds(id)).toEqual(["accept"]);
});
