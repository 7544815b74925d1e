import { expect, onTestFinished, test } from "vitest";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { ollamaRuntime } from "../../../services/agent/runtimes/ollama/ollama.ts";
import { ReplayServer, type Replay } from "../../harness/replay-server.ts";
import { emittedBy, managed } from "../../harness/ask-runtime.ts";

// What Ollama 0.33.0-rc2 answered, but for times that mean nothing.

const signal = new AbortController().signal;

async function ollamaWith(replays: Readonly<Record<string, Replay>>) {
  const server = await ReplayServer.start(replays);
  const runtime = ollamaRuntime({ url: server.url });
  onTestFinished(async () => {
    await runtime.close();
    await server[Symbol.asyncDispose]();
  });
  return runtime;
}

test("a registry that is out of reach is no model that does not exist", async () => {
  const body =
    '{"status":"pulling manifest"}\n{"error":"pull model manifest: Get \\"https://registry.ollama.ai/v2/library/nope/manifests/latest\\": dial tcp: lookup registry.ollama.ai on 192.0.2.53:53: no such host"}\n';
  const runtime = await ollamaWith({ "/api/pull": { body } });
  const pulling = managed(runtime, { action: "pull", model: "nope", signal });
  await expect(pulling).rejects.toMatchObject({
    code: "upstream_error",
    message: "The runtime could not reach its model registry.",
    internal: expect.not.stringContaining("192.0.2.53"),
  });
});

test("a call that a parser reads out of an answer, where nobody offered a tool, is text", async () => {
  const body =
    '{"model":"tiny","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_bhh2btnr","function":{"index":0,"name":"get_weather","arguments":{"city":"Rome"}}}]},"done":false}\n' +
    '{"model":"tiny","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":13,"eval_count":17}\n';
  const show = '{"capabilities":["completion","tools","thinking"],"details":{"format":"gguf"},"model_info":{}}';
  const runtime = await ollamaWith({ "/api/show": { body: show }, "/api/chat": { body } });
  const capabilities = { completion: true, vision: false, embedding: false, tools: true, thinking: true };
  const asked = chatBody.parse({ messages: [{ role: "user", content: "a" }] });
  const run = { model: "tiny", capabilities, contextWindow: 4_096, body: asked, signal, onProgress: () => {} };
  expect(await emittedBy((emit) => runtime.chat(run, emit))).toEqual([
    { kind: "text", text: '{"name": "get_weather", "arguments": {"city":"Rome"}}' },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 13, completionTokens: 17 },
  ]);
});
