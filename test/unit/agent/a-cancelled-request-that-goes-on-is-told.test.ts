import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { StubRuntime } from "./stub-runtime.ts";

/** A runtime that can be asked how many requests it works on. */
class AskableRuntime extends StubRuntime {
  busy = 0;
  asked = 0;
  async working(): Promise<number> {
    this.asked += 1;
    return this.busy;
  }
}

async function cancelledOn(runtime: AskableRuntime) {
  const agent = await agentOnBroker({ runtime, queueMax: 5 });
  const job = await agent.gateway.send();
  runtime.busy = 1;
  await agent.gateway.cancel(job);
  return agent;
}

test("a runtime that stops is asked no longer, and nothing is told", async () => {
  const runtime = new AskableRuntime();
  const { pass, timing, jobs } = await cancelledOn(runtime);
  runtime.busy = 0;
  await pass(timing.beatIntervalMs);
  const { asked } = runtime;
  expect(asked).toBeGreaterThan(0);
  await pass(timing.straysWaitMs * 2);
  expect([runtime.asked, jobs.runner.load.strays]).toEqual([asked, 0]);
});

test("a runtime that goes on is told in presence after a while, and no more once it has stopped", async () => {
  const runtime = new AskableRuntime();
  const { pass, timing, jobs } = await cancelledOn(runtime);
  await pass(timing.straysWaitMs - timing.beatIntervalMs);
  expect(jobs.runner.load.strays).toBe(0);
  await pass(timing.beatIntervalMs * 2);
  expect(jobs.runner.load.strays).toBe(1);
  runtime.busy = 0;
  await pass(timing.beatIntervalMs * 2);
  expect(jobs.runner.load.strays).toBe(0);
});

test("the several answers of a request that goes on are no strays, nor is what others ask of the runtime", async () => {
  const runtime = Object.assign(new AskableRuntime({ slots: 2 }), { answersSeveral: true });
  const { pass, timing, jobs, gateway } = await agentOnBroker({ runtime, queueMax: 5 });
  await gateway.send({ body: encodeJson({ messages: [{ role: "user", content: "Hello" }], n: 4 }) });
  await gateway.cancel(await gateway.send());
  runtime.busy = 4;
  await pass(timing.straysWaitMs * 2);
  expect(jobs.runner.load.strays).toBe(0);
  await gateway.cancel(await gateway.send());
  runtime.busy = 9;
  await pass(timing.straysWaitMs * 2);
  expect(jobs.runner.load.strays).toBe(1);
});
