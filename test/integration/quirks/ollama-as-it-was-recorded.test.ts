import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { continued, likely, replayed, type Replayed, tools } from "./replayed.ts";
import { restOfBegun } from "./recorded-answers.ts";

/** Of Ollama 0.33.0-rc2, a GGUF with a template of its own. */
const discovery = {
  "/api/version": `{"version":"0.33.0-rc2"}`,
  "/api/tags": `{"models":[{"name":"qwen3:latest","model":"qwen3:latest","modified_at":"2026-11-21T07:52:42.620774957Z","size":2650584,"digest":"e9f1fe3b450032c1f8c9f37e2122e4ff9486c5acd396cae3e72b120a6dd5cd3e","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"660K","quantization_level":"unknown","context_length":8192,"embedding_length":320},"capabilities":["completion"]}]}`,
  "/api/show": `{"details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"660K","quantization_level":"unknown"},"model_info":{"general.architecture":"llama","llama.context_length":8192},"capabilities":["tools","thinking","completion"],"modified_at":"2026-11-21T07:50:40.913969317Z"}`,
  "/api/ps": `{"models":[{"name":"qwen3:latest","model":"qwen3:latest","size":16682843,"digest":"e9f1fe3b450032c1f8c9f37e2122e4ff9486c5acd396cae3e72b120a6dd5cd3e","details":{"parent_model":"","format":"gguf","family":"llama","families":["llama"],"parameter_size":"660K","quantization_level":"unknown"},"expires_at":"2026-11-21T07:59:13.667467447Z","size_vram":0,"context_length":4096}]}`,
};

let ollama: Replayed;
beforeAll(async () => void (ollama = await replayed("ollama", discovery)));
afterAll(() => ollama[Symbol.asyncDispose]());

describe("Ollama as it was recorded", () => {
  test("quirks 13, 14, 15 and 16: thoughts under a name of its own, and on the last line a call, an end and the counts", async () => {
    const odd = String.raw`
{"model":"qwen3","created_at":"2026-11-21T07:56:01.049763187Z","message":{"role":"assistant","content":"","thinking":"I"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T07:56:01.050464497Z","message":{"role":"assistant","content":"","thinking":" should"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T07:56:01.055613694Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"mSSRXql2oKnqDZKBmvHhBfcWu3rnHqqD","function":{"index":0,"name":"get_weather","arguments":{"city":"Rome"}}}]},"done":true,"done_reason":"stop","total_duration":43983148,"load_duration":1279157,"prompt_eval_count":625,"prompt_eval_duration":32726999,"eval_count":19,"eval_duration":7218000}
`;
    expect(await ollama.streamed(odd, { tools, stream_options: { include_usage: true } })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":" should","reasoning":" should"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"mSSRXql2oKnqDZKBmvHhBfcWu3rnHqqD","type":"function","function":{"name":"get_weather","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Rome\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":625,"completion_tokens":19,"total_tokens":644}}
data: [DONE]
`);
  });

  test("quirk 10: what follows a beginning, which this version does not say once more", async () => {
    const odd = String.raw`
{"model":"qwen3","created_at":"2026-11-21T07:56:05.710919057Z","message":{"role":"assistant","content":" my"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T07:56:05.711408462Z","message":{"role":"assistant","content":" friend"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T07:56:05.711817008Z","message":{"role":"assistant","content":"!"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T07:56:05.712331291Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":19815760,"load_duration":1153621,"prompt_eval_count":18,"prompt_eval_duration":10512000,"eval_count":4,"eval_duration":1430000}
`;
    expect(await ollama.streamed(odd, continued)).toBe(restOfBegun);
  });

  test("quirk 17: an engine that was killed in the middle of an answer", async () => {
    const odd = String.raw`
{"model":"qwen3","created_at":"2026-11-21T08:11:45.399261Z","message":{"role":"assistant","content":" six"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T08:11:45.399474174Z","message":{"role":"assistant","content":" seven"},"done":false}
{"error":"an error was encountered while running the model: unexpected EOF"}
`;
    expect(await ollama.streamed(odd)).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":" six"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":" seven"},"logprobs":null,"finish_reason":null}]}
data: {"error":{"message":"The runtime failed during its answer.","type":"server_error","param":null,"code":"upstream_error"}}
`);
  });

  test("quirk 17: a connection that breaks within a line", async () => {
    const line = `{"model":"qwen3","created_at":"2026-11-21T08:11:45.399261Z","message":{"role":"assistant","content":" six"},"done":false}\n`;
    const said = Promise.withResolvers<void>();
    const odd = { body: [line, said.promise, line.slice(0, 40)], end: "cut" } as const;
    expect(await ollama.streamed(odd, {}, () => said.resolve())).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":" six"},"logprobs":null,"finish_reason":null}]}
data: {"error":{"message":"The runtime broke off its answer.","type":"server_error","param":null,"code":"upstream_error"}}
`);
  });

  test("quirk 15: an end without a last line, which comes after thirty equal tokens", async () => {
    const odd = String.raw`
{"model":"qwen3","created_at":"2026-11-21T08:13:17.234664446Z","message":{"role":"assistant","content":"same"},"done":false}
{"model":"qwen3","created_at":"2026-11-21T08:13:17.284039316Z","message":{"role":"assistant","content":"same"},"done":false}
`;
    expect(await ollama.streamed(odd)).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"same"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"same"},"logprobs":null,"finish_reason":null}]}
data: {"error":{"message":"The runtime ended its answer before it was complete.","type":"server_error","param":null,"code":"upstream_error"}}
`);
  });
});

test("a text that Ollama continues, as it was recorded, comes in a field of its own, with likelihoods as in chats and the counts on the last line", async () => {
  const odd = String.raw`
{"model":"qwen3","created_at":"2026-11-21T11:20:17.887809851Z","response":" beta","done":false,"logprobs":[{"token":" beta","logprob":0,"bytes":[32,98,101,116,97],"top_logprobs":[{"token":" beta","logprob":0,"bytes":[32,98,101,116,97]}]}]}
{"model":"qwen3","created_at":"2026-11-21T11:20:17.891502588Z","response":" gamma","done":false,"logprobs":[{"token":" gamma","logprob":0,"bytes":[32,103,97,109,109,97],"top_logprobs":[{"token":" gamma","logprob":0,"bytes":[32,103,97,109,109,97]}]}]}
{"model":"qwen3","created_at":"2026-11-21T11:20:17.891536658Z","response":"","done":true,"done_reason":"length","total_duration":9215388,"load_duration":1398043,"prompt_eval_count":2,"prompt_eval_duration":2507000,"eval_count":2,"eval_duration":328000}
`;
  expect(await ollama.continued(odd, { logprobs: 1 })).toEqual([
    { kind: "text", text: " beta", logprobs: [likely(" beta")] },
    { kind: "text", text: " gamma", logprobs: [likely(" gamma")] },
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 2, completionTokens: 2 },
  ]);
});

test("a text that Ollama continues, as it was recorded, is cut at a stop string by Ollama itself, within what was one token", async () => {
  const odd = String.raw`
{"model":"qwen3","created_at":"2026-11-21T10:54:53.771028925Z","response":"alpha","done":false}
{"model":"qwen3","created_at":"2026-11-21T10:54:53.771737616Z","response":" be","done":false}
{"model":"qwen3","created_at":"2026-11-21T10:54:53.772348742Z","response":"","done":true,"done_reason":"stop","total_duration":4741567,"load_duration":1177446,"prompt_eval_count":1,"prompt_eval_duration":653000,"eval_count":3,"eval_duration":721000}
`;
  expect(await ollama.continued(odd, { stop: ["ta g"] })).toEqual([
    { kind: "text", text: "alpha" },
    { kind: "text", text: " be" },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 1, completionTokens: 3 },
  ]);
});

test("a text that Ollama continues, as it was recorded, that is too long is refused by the engine below, in words within words", async () => {
  const body = String.raw`{"error":"{\"error\":{\"code\":400,\"message\":\"request (21000 tokens) exceeds the available context size (4096 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":21000,\"n_ctx\":4096}}"}`;
  await expect(ollama.continued({ status: 400, body })).rejects.toMatchObject({
    code: "context_length_exceeded",
    param: "prompt",
    message: expect.stringMatching(/is 4096 tokens.*resulted in 21000/),
  });
});
