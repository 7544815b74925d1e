import { expect, test } from "vitest";
import { contentText } from "#shared/protocol/job-bodies.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { StubRuntime } from "./stub-runtime.ts";
import type { ChatRun } from "../../../services/agent/runtimes/runtime.ts";

/** Counts the characters of the first message, when the test lets it. */
class CountingRuntime extends StubRuntime {
  counts = 0;
  held = Promise.resolve();

  async count({ body }: ChatRun): Promise<number> {
    this.counts += 1;
    await this.held;
    return contentText(body.messages[0]?.content).length;
  }
}

const counting = () => agentOnBroker({ slots: 1, queueMax: 0, runtime: new CountingRuntime() });

test("a count of a prompt takes no slot from requests", async () => {
  const runtime = new CountingRuntime();
  const { promise, resolve } = Promise.withResolvers<void>();
  runtime.held = promise;
  const { gateway, jobs, settle } = await agentOnBroker({ slots: 1, queueMax: 0, runtime });
  const count = await gateway.send({ kind: "count" });
  expect(jobs.runner.load).toMatchObject({ running: 0, queued: 0 });
  await gateway.send();
  expect(runtime.chats).toHaveLength(1);
  resolve();
  await settle();
  const usage = { promptTokens: "Hello".length, completionTokens: 0 };
  expect(gateway.lastOf(count)).toMatchObject({ kind: "end", payload: { usage } });
});

test("a count of a prompt is refused by a runtime that cannot count, and no answer is begun", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send({ kind: "count" });
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "unsupported_value" } });
  expect(runtime.chats).toHaveLength(0);
});

test("a count of a prompt is refused beyond countJobsMax, and taken again when another one is over", async () => {
  const runtime = new CountingRuntime();
  const { promise, resolve } = Promise.withResolvers<void>();
  runtime.held = promise;
  const { gateway, settle } = await agentOnBroker({ runtime });
  const ids: string[] = [];
  for (let sent = 0; sent < 33; sent += 1) ids.push(await gateway.send({ kind: "count" }));
  expect(ids.map((id) => gateway.lastOf(id).kind)).toEqual([...ids.slice(1).map(() => "accept"), "reject"]);
  expect(gateway.lastOf(ids.at(-1) ?? "").payload).toMatchObject({ message: expect.stringContaining("countJobsMax") });
  resolve();
  await settle();
  expect(gateway.lastOf(await gateway.send({ kind: "count" }))).toMatchObject({ kind: "end" });
});

test("a machine offers counts for the models of runtimes that count", async () => {
  const able = await counting();
  const unable = await agentOnBroker();
  expect([able, unable].map(({ watch }) => watch.offer?.catalogue[0]?.counts)).toEqual([true, undefined]);
});
