import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import type { OpenAiServerKind } from "../../../services/agent/runtimes/openai/openai-profile.ts";
import { recogniseOpenAiServer } from "../../../services/agent/runtimes/openai/recognise-openai-server.ts";
import { type Replay, ReplayServer } from "../../harness/replay-server.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { until } from "../../harness/until.ts";
import type { Embeddings } from "../../../services/agent/runtimes/runtime.ts";
import { emittedBy, managed } from "../../harness/ask-runtime.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";
import { ollamaRuntime } from "../../../services/agent/runtimes/ollama/ollama.ts";

// What real servers answered, byte for byte but for ids and times that mean nothing: llama-server 0.7.0, mlx-lm 0.32.2
// and vLLM 0.32.0.

const signal = new AbortController().signal;
const able = { completion: true, vision: false, embedding: false, tools: true, thinking: true };
const chats = "/v1/chat/completions";
const vectors = "/v1/embeddings";

async function runtimeAt(wanted: OpenAiServerKind, replays: Readonly<Record<string, Replay>>) {
  const server = await ReplayServer.start({ "/v1/models": { body: '{"object":"list","data":[]}' }, ...replays });
  const clock = new TurnableClock();
  const runtime = await recogniseOpenAiServer({ url: server.url, clock }, { wanted, signal, hubFolder: "/nowhere" });
  if (runtime === undefined) throw new Error("it was not recognised");
  onTestFinished(async () => {
    await runtime.close?.();
    await server[Symbol.asyncDispose]();
  });
  async function answer(fields: object = {}, model = "m"): Promise<AnswerEvent[]> {
    const body = chatBody.parse({ messages: [{ role: "user", content: "Hello" }], ...fields });
    const run = { model, capabilities: able, contextWindow: 8_192, body, signal, onProgress: () => {} };
    return emittedBy(async (emit) => runtime?.chat(run, emit));
  }
  async function embedding(): Promise<Embeddings | undefined> {
    const body = { input: ["a"] };
    const run = { model: "m", capabilities: able, contextWindow: 8_192, body, signal, onProgress: () => {} };
    return runtime?.embed?.(run);
  }
  return { server, runtime, clock, answer, embedding };
}

function folder(name: string, files: Readonly<Record<string, unknown>>): string {
  const parent = folderOfTest();
  mkdirSync(join(parent, name));
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(parent, name, file), typeof content === "string" ? content : JSON.stringify(content));
  }
  return join(parent, name);
}

test("mlx-lm is left before it reads a prompt that is longer than the window, which it would do for minutes", async () => {
  const held = Promise.withResolvers<void>();
  onTestFinished(() => held.resolve());
  const body = [": keepalive 0/190004\n\n", held.promise];
  const { answer } = await runtimeAt("mlx-lm", { [chats]: { body } });
  await expect(answer()).rejects.toMatchObject({
    code: "context_length_exceeded",
    message:
      "This model's maximum context length is 8192 tokens on this machine. However, your messages resulted in 190004 tokens.",
  });
});

const whole = [
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}\n\n',
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}\n\n',
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[],"usage":{"prompt_tokens":11,"total_tokens":12,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":0}}}\n\n',
  "data: [DONE]\n\n",
];

test("vLLM is asked once for each of several answers without chance, which it refuses to give at once", async () => {
  const { server, answer } = await runtimeAt("vllm", { [chats]: { body: whole } });
  expect(await answer({ n: 2, temperature: 0 })).toEqual([
    { kind: "text", choice: 0, text: "Hello" },
    { kind: "finish", choice: 0, reason: "length" },
    { kind: "text", choice: 1, text: "Hello" },
    { kind: "finish", choice: 1, reason: "length" },
    { kind: "usage", promptTokens: 11, completionTokens: 2, reasoningTokens: 0 },
  ]);
  const asked = server.requestsTo(chats).map(({ body }) => body);
  expect(asked).toHaveLength(2);
  for (const body of asked) expect(body).not.toHaveProperty("n");
});

test("vLLM that only embeds, or only chats, does not have the other interface, and the model is what cannot", async () => {
  const nowhere = { status: 404, body: '{"detail":"Not Found"}' };
  const { answer, embedding } = await runtimeAt("vllm", { [chats]: nowhere, [vectors]: nowhere });
  await expect(answer()).rejects.toMatchObject({ code: "unsupported_value", param: "model" });
  await expect(embedding()).rejects.toMatchObject({ code: "unsupported_value", message: "The model does not embed." });
});

test("vLLM tells by the files of its model whether that thinks and sees, and no client where they lie", async () => {
  const place = folder("tiny", {
    "config.json": { vision_config: {} },
    "chat_template.jinja": "{% if enable_thinking %}<think>{% endif %}",
  });
  const listed = `{"id":"${place}","object":"model","created":1,"owned_by":"vllm","root":"${place}","parent":null,"max_model_len":8192}`;
  const { server, runtime, answer } = await runtimeAt("vllm", {
    "/v1/models": { body: `{"object":"list","data":[${listed}]}` },
    [chats]: { body: whole },
  });
  expect(await runtime.catalogue(signal)).toMatchObject([
    {
      id: "tiny",
      ownedBy: "vllm",
      capabilities: { thinking: true, vision: true, tools: true },
      contextTokens: 8_192,
    },
  ]);
  await answer({}, "tiny");
  expect(server.requestsTo(chats).at(-1)?.body).toMatchObject({ model: place });
});

test("vLLM reads the files of its model again when they were missing, since they may still have been on their way", async () => {
  const place = join(folder("hub", {}), "tiny");
  const listed = `{"id":"${place}","object":"model","created":1,"owned_by":"vllm","root":"${place}","parent":null,"max_model_len":8192}`;
  const { runtime } = await runtimeAt("vllm", {
    "/v1/models": { body: `{"object":"list","data":[${listed}]}` },
    [chats]: { body: whole },
  });
  const sees = async () => (await runtime.catalogue(signal))[0]?.capabilities?.vision;
  expect(await sees()).not.toBe(true);
  mkdirSync(place);
  writeFileSync(join(place, "config.json"), '{"vision_config":{}}');
  expect(await sees()).toBe(true);
});

const props = { body: '{"role":"router","max_instances":2,"model_path":"none","build_info":"b11669-Debian"}' };
const listed = (status: string): Replay => ({
  body: `{"data":[{"id":"tiny","object":"model","owned_by":"llamacpp","status":{"value":"${status}","args":["/bin/llama-server","--alias","tiny","--model","/nowhere/tiny.gguf"]},"source":"models_dir","context_length":8192}],"object":"list"}`,
});

test("llama-server as a router tells the window of a model that is not loaded", async () => {
  const { runtime } = await runtimeAt("llama-server", { "/props": props, "/models": listed("unloaded") });
  expect(await runtime.catalogue(signal)).toMatchObject([{ id: "tiny", contextTokens: 8_192, loaded: false }]);
});

test.each([
  ["load", "loaded"],
  ["unload", "unloaded"],
] as const)(
  "llama-server as a router is not told to %s what is %s already, which it would refuse",
  async (action, status) => {
    const running = { status: 400, body: '{"error":{"code":400,"message":"model is already running"}}' };
    const refusals = { "/models/load": running, "/models/unload": running };
    const router = { "/props": props, "/models": listed(status), ...refusals };
    const { server, runtime } = await runtimeAt("llama-server", router);
    await runtime.catalogue(signal);
    const manage = (model: string) => managed(runtime, { action, model, signal });
    expect(await manage("tiny")).toEqual([{ status }]);
    await expect(manage("nope")).rejects.toMatchObject({ code: "model_not_found" });
    expect(server.requestsTo(`/models/${action}`)).toEqual([]);
  },
);

test("llama-server as a router has unloaded a model once its list says so, and not when it is told to", async () => {
  const router = { "/props": props, "/models": listed("loaded"), "/models/unload": { body: '{"success":true}' } };
  const { server, runtime, clock } = await runtimeAt("llama-server", router);
  await runtime.catalogue(signal);
  const unloading = managed(runtime, { action: "unload", model: "tiny", signal });
  await until(() => clock.timersWaiting > 0, { what: "the list to be asked once more later" });
  server.answers("/models", listed("unloaded"));
  clock.advance(500);
  expect(await unloading).toEqual([{ status: "unloading" }, { status: "unloaded" }]);
});

test("a request under way is told that its model is loading once the list of a router says so, and one that is over is not", async () => {
  const held = Promise.withResolvers<void>();
  const router = { "/props": props, "/models": listed("loaded"), [chats]: { body: [held.promise] } };
  const { server, runtime } = await runtimeAt("llama-server", router);
  await runtime.catalogue(signal);
  const leaving = new AbortController();
  const phases: unknown[] = [];
  const onProgress = (silence?: unknown): void => void phases.push(silence);
  const body = chatBody.parse({ messages: [{ role: "user", content: "Hello" }] });
  const run = { model: "tiny", capabilities: able, contextWindow: 8_192, body, signal: leaving.signal, onProgress };
  const over = expect(runtime.chat(run, () => undefined)).rejects.toThrow();
  await until(() => server.requestsTo(chats).length === 1, { what: "the request to reach the server" });
  expect(phases).not.toContain("loading");
  server.answers("/models", listed("loading"));
  await runtime.catalogue(signal);
  expect(phases.filter((phase) => phase === "loading")).toHaveLength(1);
  leaving.abort();
  held.resolve();
  await over;
  await runtime.catalogue(signal);
  expect(phases.filter((phase) => phase === "loading")).toHaveLength(1);
});

test("llama-server as a router works on nothing for a model that was unloaded just now", async () => {
  const router = { "/props": props, "/models": listed("loaded") };
  const { server, runtime } = await runtimeAt("llama-server", router);
  await runtime.catalogue(signal);
  const slots = "/slots?model=tiny&autoload=false";
  server.answers(slots, { body: '[{"id":0,"is_processing":true},{"id":1,"is_processing":false}]' });
  expect(await runtime.working?.(signal)).toBe(1);
  server.answers(slots, { status: 400, body: '{"error":{"code":400,"message":"model is not running"}}' });
  expect(await runtime.working?.(signal)).toBe(0);
});

// Ollama 0.33.0-rc2 answered so, but for times that mean nothing.

test("a registry that is out of reach is no model that does not exist", async () => {
  const body =
    '{"status":"pulling manifest"}\n{"error":"pull model manifest: Get \\"https://registry.ollama.ai/v2/library/nope/manifests/latest\\": dial tcp: lookup registry.ollama.ai on 192.0.2.53:53: no such host"}\n';
  await using server = await ReplayServer.start({ "/api/pull": { body } });
  const runtime = ollamaRuntime({ url: server.url });
  onTestFinished(() => runtime.close());
  const pulling = managed(runtime, { action: "pull", model: "nope", signal: new AbortController().signal });
  await expect(pulling).rejects.toMatchObject({
    code: "upstream_error",
    message: "The runtime could not reach its model registry.",
    internal: expect.not.stringContaining("192.0.2.53"),
  });
});
