import type { RuntimeName } from "./staged.ts";

/** "Hello there" as each of them sends it, with its usage. */
export const odd: Readonly<Record<RuntimeName, string>> = {
  Ollama: `
{"model":"m:latest","created_at":"2026-11-20T10:00:00.1Z","message":{"role":"assistant","content":"Hello"},"done":false}
{"model":"m:latest","created_at":"2026-11-20T10:00:00.2Z","message":{"role":"assistant","content":" there"},"done":false}
{"model":"m:latest","created_at":"2026-11-20T10:00:00.3Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1,"load_duration":1,"prompt_eval_count":20,"prompt_eval_duration":1,"eval_count":3,"eval_duration":1}
`,
  vLLM: `
data: {"id":"chatcmpl-0a","object":"chat.completion.chunk","created":1795200000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}
data: {"id":"chatcmpl-0a","object":"chat.completion.chunk","created":1795200000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-0a","object":"chat.completion.chunk","created":1795200000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":"stop","stop_reason":151645}]}
data: {"id":"chatcmpl-0a","object":"chat.completion.chunk","created":1795200000,"model":"Qwen/Qwen3-8B","choices":[],"usage":{"prompt_tokens":20,"total_tokens":23,"completion_tokens":3}}
data: [DONE]
`,
  "llama-server": `
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1795200000,"id":"chatcmpl-Vq8h2kXr","model":"qwen3-8b.gguf","system_fingerprint":"b11669-v0.7.0","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hello"}}],"created":1795200000,"id":"chatcmpl-Vq8h2kXr","model":"qwen3-8b.gguf","system_fingerprint":"b11669-v0.7.0","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" there"}}],"created":1795200001,"id":"chatcmpl-Vq8h2kXr","model":"qwen3-8b.gguf","system_fingerprint":"b11669-v0.7.0","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1795200001,"id":"chatcmpl-Vq8h2kXr","model":"qwen3-8b.gguf","system_fingerprint":"b11669-v0.7.0","object":"chat.completion.chunk"}
data: {"choices":[],"created":1795200001,"id":"chatcmpl-Vq8h2kXr","model":"qwen3-8b.gguf","system_fingerprint":"b11669-v0.7.0","object":"chat.completion.chunk","usage":{"completion_tokens":3,"prompt_tokens":20},"timings":{"prompt_n":20,"prompt_ms":21.5,"predicted_n":3,"predicted_ms":30.1}}
data: [DONE]
`,
  "LM Studio": `
data: {"id":"chatcmpl-jw9m3kq5z7","object":"chat.completion.chunk","created":1795200000,"model":"qwen/qwen3-8b","system_fingerprint":"qwen/qwen3-8b","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"logprobs":null,"finish_reason":null}]}
data: {"id":"chatcmpl-jw9m3kq5z7","object":"chat.completion.chunk","created":1795200000,"model":"qwen/qwen3-8b","system_fingerprint":"qwen/qwen3-8b","choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"logprobs":null,"finish_reason":null}]}
data: {"id":"chatcmpl-jw9m3kq5z7","object":"chat.completion.chunk","created":1795200000,"model":"qwen/qwen3-8b","system_fingerprint":"qwen/qwen3-8b","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: {"id":"chatcmpl-jw9m3kq5z7","object":"chat.completion.chunk","created":1795200000,"model":"qwen/qwen3-8b","system_fingerprint":"qwen/qwen3-8b","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}}
data: [DONE]
`,
  "mlx-lm": `
: keepalive 10/20
data: {"id":"chatcmpl-8d1c2f4e","system_fingerprint":"0.32.0","object":"chat.completion.chunk","model":"mlx-community/Qwen3-8B-4bit","created":1795200000,"choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant","content":"Hello"}}]}
data: {"id":"chatcmpl-8d1c2f4e","system_fingerprint":"0.32.0","object":"chat.completion.chunk","model":"mlx-community/Qwen3-8B-4bit","created":1795200000,"choices":[{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":" there"}}]}
data: {"id":"chatcmpl-8d1c2f4e","system_fingerprint":"0.32.0","object":"chat.completion","model":"mlx-community/Qwen3-8B-4bit","created":1795200000,"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}}
data: [DONE]
`,
};

/** The same to every client: `{…` is one head, with an id of its own, over all chunks; `short-form.ts` insists on it. */
export const normal = `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`;

export const normalWithUsage = `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}}
data: [DONE]
`;

/** The rest of an answer after its beginning. Clients get the beginning only once. */
export const restOfBegun = `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":" my"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":" friend"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"!"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`;
