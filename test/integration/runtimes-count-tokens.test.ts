import { describe, expect, test } from "vitest";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Runtime } from "../../services/agent/runtimes/runtime.ts";
import { scriptedRuntime } from "../../services/agent/runtimes/scripted/scripted.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../harness/fake-mlx-lm.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { chatOn, eventsOf } from "../harness/ask-runtime.ts";
import { runtimeAt } from "./runtime-faults/faked-runtimes.ts";

const { signal } = new AbortController();
const all = { completion: true, vision: true, embedding: false, tools: true, thinking: true };
const weather = { type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } };

async function counted(runtime: Runtime, model: string, fields: object): Promise<number | undefined> {
  const body: ChatBody = chatBody.parse({ messages: [{ role: "user", content: "one two three" }], ...fields });
  return runtime.count?.({ model, body, capabilities: all, contextWindow: 8_192, signal, onProgress: () => undefined });
}

const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };

describe("the tokens of a prompt are counted by its own runtime", () => {
  test("the tokens of a prompt are counted as llama-server applies its template, with the marks that it adds to a chat", async () => {
    const fake = await FakeLlamaServer.start({ model: { name: "m", vision: true } });
    const runtime = await runtimeAt(fake);
    // The fake's template writes a tool as one word, and each prompt begins with a mark.
    expect(await counted(runtime, "m", {})).toBe(4);
    expect(await counted(runtime, "m", { tools: [weather], reasoning_effort: "none" })).toBe(5);
    expect(fake.requestsTo("/apply-template").at(-1)?.body).toMatchObject({
      messages: [{ role: "user", content: "one two three" }],
      tools: [weather],
      chat_template_kwargs: { enable_thinking: false },
    });
  });

  test("the tokens of a prompt are counted by vLLM with the arguments that its template gets in a chat", async () => {
    const fake = await FakeVllm.start({ models: [{ id: "m" }] });
    const runtime = await runtimeAt(fake);
    expect(await counted(runtime, "m", { tools: [weather], reasoning_effort: "low" })).toBe(4);
    expect(fake.requestsTo("/tokenize").at(-1)?.body).toEqual({
      model: "m",
      messages: [{ role: "user", content: "one two three" }],
      tools: [weather],
      chat_template_kwargs: { reasoning_effort: "low" },
    });
    await counted(runtime, "m", { reasoning_effort: "none" });
    expect(fake.requestsTo("/tokenize").at(-1)?.body).toMatchObject({
      chat_template_kwargs: { enable_thinking: false, thinking: false },
    });
  });

  test("the tokens of a prompt are counted by the demonstration as it reports after an answer", async () => {
    const runtime = scriptedRuntime({ clock });
    const events = await eventsOf(chatOn(runtime, { model: "scripted", says: "one two three" }));
    const usage = events.find((event) => event.kind === "usage");
    expect(await counted(runtime, "scripted", {})).toBe(usage?.promptTokens);
  });
});

test("the tokens of a prompt stay unknown with an image, which only an answer counts", async () => {
  const runtime = await runtimeAt(await FakeLlamaServer.start({ model: { name: "m", vision: true } }));
  const messages = [{ role: "user", content: [picture] }];
  await expect(counted(runtime, "m", { messages })).rejects.toMatchObject({ code: "unsupported_value" });
});

test("the tokens of a prompt stay unknown with a model that would have to be loaded first", async () => {
  const fake = await FakeLlamaServer.start({ model: { name: "m" } });
  const runtime = await runtimeAt(fake);
  fake.sleeping = true;
  await runtime.catalogue(signal);
  await expect(counted(runtime, "m", {})).rejects.toMatchObject({ code: "unsupported_value" });
  expect(fake.requestsTo("/apply-template")).toEqual([]);
});

test("the tokens of a prompt stay unknown on servers that have no way to count", async () => {
  const studio = await runtimeAt(await FakeLmStudio.start({ models: [{ key: "m" }] }));
  const mlx = await runtimeAt(await FakeMlxLm.start());
  expect([studio, mlx].map((runtime) => "count" in runtime)).toEqual([false, false]);
});
