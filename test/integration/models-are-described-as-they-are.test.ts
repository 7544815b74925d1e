import { expect, test } from "vitest";
import { catalogue, type OfferedModel } from "#shared/protocol/model.ts";
import type { Runtime } from "../../services/agent/runtimes/runtime.ts";
import { FakeLlamaRouter } from "../harness/fake-llama-router.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../harness/fake-lm-studio.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { firstSeenSeconds, offeredBy, emittedBy, managed } from "../harness/ask-runtime.ts";
import { until } from "../harness/until.ts";
import { runtimeAt } from "./runtime-faults/faked-runtimes.ts";

const { signal } = new AbortController();
const chats = { completion: true, vision: false, embedding: false, tools: false, thinking: false };
const embeds = { ...chats, completion: false, embedding: true };

/** The models once the agent has found out what it had to ask for. */
async function offered(runtime: Runtime, model: (offer: OfferedModel) => boolean): Promise<OfferedModel[]> {
  const found = await until(
    async () => {
      const models = await offeredBy(runtime);
      return models.some(model) && models;
    },
    { what: "the models to be described" },
  );
  return catalogue.parse(found);
}

test("vLLM: its window, and tools where it was set up for them", async () => {
  for (const toolParser of [true, false]) {
    const models = [{ id: "Qwen/Qwen3-8B" }, { id: "my-adapter", root: "/adapters/mine", parent: "Qwen/Qwen3-8B" }];
    const fake = await FakeVllm.start({ models, maxModelLen: 16_384, toolParser });
    const runtime = await runtimeAt(fake);
    const known = await offered(runtime, () => fake.requestsTo("/v1/chat/completions").length > 0);
    expect(known).toMatchObject([
      {
        id: "Qwen/Qwen3-8B",
        owned_by: "Qwen",
        context_window: 16_384,
        capabilities: { ...chats, tools: toolParser },
      },
      { id: "my-adapter", owned_by: "vllm", context_window: 16_384, capabilities: { ...chats, tools: toolParser } },
    ]);
    // Theirs is the time of the call, and would change with every list.
    expect(known.map(({ created }) => created)).toEqual([firstSeenSeconds, firstSeenSeconds]);
  }
});

test("llama-server: the window of a slot, its file's size, what its template and its projector make possible", async () => {
  const model = { name: "/models/qwen3-8b.gguf", contextTokens: 4_096, slots: 2, sizeBytes: 5_027_783_488 };
  const fake = await FakeLlamaServer.start({ model: { ...model, vision: true, template: "{{ tools }}<think>" } });
  const runtime = await runtimeAt(fake);
  expect(await offered(runtime, () => true)).toMatchObject([
    {
      id: "qwen3-8b",
      owned_by: "llamacpp",
      context_window: 4_096,
      size_mb: 5_028,
      capabilities: { ...chats, vision: true, tools: true, thinking: true },
      runtime_profile: "auto",
      loaded: true,
      sampling: { temperature: 0.8, top_p: 0.95 },
    },
  ]);
  expect(runtime.slots).toBe(2);
});

test("llama-server as a router: models that are not loaded are not loaded by being described", async () => {
  const models = [
    { name: "one", status: "loaded" as const, contextTokens: 2_048, slots: 1 },
    { name: "two", args: ["llama-server", "--ctx-size", "8192", "--parallel", "4"] },
    { name: "three", status: "downloading" as const },
  ];
  const fake = await FakeLlamaRouter.start({ models });
  const known = await offered(await runtimeAt(fake), () => true);
  expect(known).toMatchObject([
    { id: "one", context_window: 2_048, loaded: true, capabilities: { tools: true } },
    { id: "two", context_window: 2_048, loaded: false },
  ]);
  expect(known).toHaveLength(2);
  expect(fake.models.map(({ status }) => status)).toEqual(["loaded", undefined, "downloading"]);
});

test("llama-server as a router loads and unloads at an operator's word", async () => {
  const fake = await FakeLlamaRouter.start({ models: [{ name: "one" }] });
  const runtime = await runtimeAt(fake);
  const loading = managed(runtime, { action: "load", model: "one", signal });
  await until(() => fake.models[0]?.status === "loading", { what: "the model to be loading" });
  fake.tell("one", "loaded");
  expect((await loading).at(-1)).toEqual({ status: "loaded" });
  await managed(runtime, { action: "unload", model: "one", signal });
  expect(fake.models[0]?.status).toBe("unloaded");
});

test("LM Studio: the window that is loaded, its capabilities, and MLX", async () => {
  const models = [
    {
      key: "qwen/qwen3-8b",
      loadedTokens: 8_192,
      maxContextTokens: 40_960,
      tools: true,
      thinks: true,
      sizeBytes: 5_000_000_000,
    },
    {
      key: "google/gemma-3",
      type: "vlm" as const,
      format: "mlx" as const,
      maxContextTokens: 131_072,
      selectedVariant: "google/gemma-3@4bit",
    },
    { key: "nomic-embed", type: "embedding" as const, publisher: "nomic-ai" },
  ];
  expect(await offered(await runtimeAt(await FakeLmStudio.start({ models })), () => true)).toMatchObject([
    {
      id: "qwen/qwen3-8b",
      owned_by: "qwen",
      context_window: 8_192,
      size_mb: 5_000,
      capabilities: { ...chats, tools: true, thinking: true },
      runtime_profile: "auto",
      loaded: true,
    },
    {
      id: "google/gemma-3:4bit",
      context_window: 131_072,
      capabilities: { ...chats, vision: true },
      runtime_profile: "apple-mlx",
      apple_mlx: true,
      loaded: false,
    },
    { id: "nomic-embed", owned_by: "nomic-ai", capabilities: embeds },
  ]);
});

test("LM Studio loads and unloads at an operator's word", async () => {
  const fake = await FakeLmStudio.start({ models: [{ key: "m" }] });
  const runtime = await runtimeAt(fake);
  await managed(runtime, { action: "load", model: "m", signal });
  expect(fake.models).toMatchObject([{ key: "m", loadedTokens: 4_096 }]);
  await managed(runtime, { action: "unload", model: "m", signal });
  expect(fake.models[0]).not.toHaveProperty("loadedTokens");
});

test.each([
  ["vllm", () => FakeVllm.start({ models: [{ id: "m" }] })],
  ["llama-server", () => FakeLlamaServer.start({ model: { name: "m" } })],
])("%s can be asked how much it works on, and what was left is not counted", async (_, start) => {
  const fake = await start();
  const runtime = await runtimeAt(fake);
  fake.onChat = () => undefined;
  const leaving = new AbortController();
  const messages = [{ role: "user" as const, content: "Hi" }];
  const run = { model: "m", capabilities: chats, contextWindow: 4_096, body: { messages }, onProgress: () => {} };
  const asked = emittedBy((emit) => runtime.chat({ ...run, signal: leaving.signal }, emit)).catch(() => "left");
  await until(async () => (await runtime.working?.(signal)) === 1, { what: "the chat to be counted" });
  leaving.abort(new Error("nobody waits"));
  expect(await asked).toBe("left");
  await until(async () => (await runtime.working?.(signal)) === 0, { what: "the runtime to be idle" });
});
