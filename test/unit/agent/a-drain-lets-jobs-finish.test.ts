import { expect, test } from "vitest";
import { agentOnBroker } from "./agent-on-a-broker.ts";

async function draining(options: { slots?: number; queueMax?: number } = {}) {
  const agent = await agentOnBroker(options);
  const deadline = new AbortController();
  let drained = false;
  return {
    ...agent,
    deadline,
    drain: () => void agent.jobs.drain(deadline.signal).then(() => (drained = true)),
    isDrained: () => drained,
  };
}

test("a drain waits for what runs and for what waits, and until the gateway has every terminal frame", async () => {
  const { gateway, runtime, drain, isDrained, pass } = await draining();
  const [running, waiting] = [await gateway.send(), await gateway.send()];
  drain();
  await pass(60_000 - 1);
  await runtime.begun(0).finish().settled();
  await runtime.begun(1).finish().settled();
  expect([running, waiting].map((id) => gateway.lastOf(id).kind)).toEqual(["end", "end"]);
  expect(isDrained()).toBe(false);
  await gateway.say({ kind: "finish", jobs: [running, waiting] });
  await pass(100);
  expect(isDrained()).toBe(true);
});

test("a drain does not wait for ever for a gateway that does not take its terminal frames", async () => {
  const { gateway, runtime, drain, isDrained, pass, timing } = await draining();
  const id = await gateway.send();
  drain();
  await runtime.begun().finish().settled();
  await pass(timing.terminalRepeatMs);
  expect(isDrained()).toBe(false);
  await pass(timing.terminalRepeatMs * 2);
  expect(isDrained()).toBe(true);
  expect(gateway.kinds(id).filter((kind) => kind === "end").length).toBeGreaterThan(1);
});

test("a drain cuts at the deadline what still runs or waits, and says why", async () => {
  const { gateway, runtime, drain, isDrained, deadline, settle, pass, timing } = await draining();
  const ids = [await gateway.send(), await gateway.send()];
  drain();
  await pass(timing.beatIntervalMs);
  deadline.abort();
  await settle();
  for (const id of ids) expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "shutting_down" } });
  expect(runtime.chats.map(({ run }) => run.signal.aborted)).toEqual([true]);
  await gateway.say({ kind: "finish", jobs: ids });
  await pass(100);
  expect(isDrained()).toBe(true);
});

test("a drain tells whoever reads too slowly at the deadline, in front of what it has not read", async () => {
  const { gateway, runtime, drain, deadline, settle } = await draining();
  const id = await gateway.send({ credit: 10 });
  await runtime.begun().text("Hello there").settled();
  drain();
  deadline.abort();
  await settle();
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", sequence: 2, payload: { code: "shutting_down" } });
});

test("a drain does not wait past its deadline for a client that leaves the end of its answer unread", async () => {
  const { gateway, runtime, drain, isDrained, deadline, pass, timing } = await draining();
  const id = await gateway.send({ credit: 1 });
  await gateway.say({ kind: "lease", gateway: gateway.id });
  await runtime.begun().text("Hello").settled();
  await gateway.say({ kind: "credit", job: id, taken: 1, limit: 2 });
  await runtime.begun().finish().settled();
  drain();
  await pass(timing.beatIntervalMs);
  expect([gateway.kinds(id).includes("end"), isDrained()]).toEqual([false, false]);
  deadline.abort();
  await pass(timing.terminalRepeatMs * 2 + 100);
  expect(isDrained()).toBe(true);
});
