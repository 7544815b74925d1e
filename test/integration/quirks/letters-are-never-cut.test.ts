import { expect, test } from "vitest";
import { replayed } from "./replayed.ts";

const ending = `data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}\n\ndata: [DONE]\n\n`;
const delta = (content: string) => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
const listOf = (model: string) => ({ "/v1/models": `{"object":"list","data":[${model}]}` });
const llamaProps = `{"default_generation_settings":{"n_ctx":8192},"total_slots":4,"chat_template":""}`;
const studioModel = `{"type":"llm","publisher":"qwen","key":"q","size_bytes":1,"loaded_instances":[],"max_context_length":8192,"format":"gguf"}`;

/** The bytes of "ü", "👋" and "中", as each of them sends them. */
const runtimes = {
  Ollama: {
    kind: "ollama",
    discovery: {
      "/api/tags": `{"models":[{"name":"q:latest","digest":"d","size":1,"modified_at":"2026-11-21T07:52:42Z"}]}`,
      "/api/show": `{"model_info":{},"capabilities":["completion"]}`,
      "/api/ps": `{"models":[]}`,
    },
    odd: `{"model":"q","message":{"role":"assistant","content":"Hello"},"done":false}
{"model":"q","message":{"role":"assistant","content":"ü👋中"},"done":false}
{"model":"q","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}
`,
  },
  vLLM: {
    kind: "vllm",
    discovery: listOf(`{"id":"q","object":"model","owned_by":"vllm","root":"q","max_model_len":8192}`),
    odd: delta("Hello") + delta("ü👋中") + ending,
  },
  "llama-server": {
    kind: "llama-server",
    discovery: {
      "/props": llamaProps,
      ...listOf(`{"id":"q","object":"model","owned_by":"llamacpp","meta":{"n_ctx":8192,"size":1}}`),
    },
    odd: delta("Hello") + delta("ü👋中") + ending,
  },
  "LM Studio": {
    kind: "lm-studio",
    discovery: {
      "/api/v1/models": `{"models":[${studioModel}]}`,
      ...listOf(`{"id":"q","object":"model","owned_by":"organization_owner"}`),
    },
    odd: delta("Hello") + delta("ü👋中") + ending,
  },
  "mlx-lm, which writes them as escapes": {
    kind: "mlx-lm",
    discovery: listOf(`{"id": "q", "object": "model", "created": 1795247564}`),
    odd: delta("Hello") + delta(String.raw`\u00fc\ud83d\udc4b\u4e2d`) + ending,
  },
} as const;

const normal = `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"ü👋中"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`;

test.each(Object.entries(runtimes))(
  "quirk 22: letters of which a read ends within the bytes are whole all the same, %s",
  async (_, { kind, discovery, odd }) => {
    await using runtime = await replayed(kind, discovery);
    const bytes = Buffer.from(odd);
    const written = odd.includes("ü") ? "ü👋中" : String.raw`\u00fc\ud83d\udc4b\u4e2d`;
    const from = bytes.indexOf(written);
    for (let at = from + 1; at < from + Buffer.byteLength(written); at += 1) {
      const seen = Promise.withResolvers<void>();
      const body = [bytes.subarray(0, at), seen.promise, bytes.subarray(at)];
      // The rest is sent once the client has what came before, so that it was read in two pieces.
      expect(await runtime.streamed({ body }, {}, () => seen.resolve())).toBe(normal);
    }
  },
);
