import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { replayed, type Replayed, tools } from "./replayed.ts";

/** Of mlx-lm 0.32.2, which speaks HTTP/1.0: its answers end where the connection does. */
const discovery = {
  "/health": `{"status": "ok"}`,
  "/v1/models": `{"object": "list", "data": [{"id": "mlx-community/Qwen3-8B-4bit", "object": "model", "created": 1795247564}]}`,
};

let mlx: Replayed;
beforeAll(async () => void (mlx = await replayed("mlx-lm", discovery)));
afterAll(() => mlx[Symbol.asyncDispose]());

const odd = String.raw`
: keepalive 1/1
data: {"id": "chatcmpl-3d995f15-3ab4-4f90-87f5-0424c57f1801", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "reasoning": "\n"}}]}
data: {"id": "chatcmpl-3d995f15-3ab4-4f90-87f5-0424c57f1801", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "reasoning": "I"}}]}
data: {"id": "chatcmpl-3d995f15-3ab4-4f90-87f5-0424c57f1801", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "content": "\n\n"}}]}
data: {"id": "chatcmpl-3d995f15-3ab4-4f90-87f5-0424c57f1801", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}, "type": "function", "id": "073106fb-3731-46e4-b242-8147a92a11ff", "index": 0}]}}]}
data: {"id": "chatcmpl-3d995f15-3ab4-4f90-87f5-0424c57f1801", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": "tool_calls", "delta": {"role": "assistant"}}]}
data: {"id": "chatcmpl-3d995f15-3ab4-4f90-87f5-0424c57f1801", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [], "usage": {"prompt_tokens": 513, "completion_tokens": 19, "total_tokens": 532, "prompt_tokens_details": {"cached_tokens": 512}}}
data: [DONE]
`;

describe("mlx-lm as it was recorded", () => {
  test("quirks 12, 13, 14, 15 and 16: a comment, a role on every delta, a call that is whole, and usage in no chunk", async () => {
    expect(await mlx.streamed(odd, { tools, stream_options: { include_usage: true } })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":"\n\n"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"073106fb-3731-46e4-b242-8147a92a11ff","type":"function","function":{"name":"get_weather","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"Rome\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":513,"completion_tokens":19,"total_tokens":532,"prompt_tokens_details":{"cached_tokens":512}}}
data: [DONE]
`);
  });

  test("quirk 5: a call that nobody offered it is the text that the model wrote", async () => {
    const sent = await mlx.streamed(odd);
    expect(sent).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"\n\n"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`);
    expect(await mlx.streamed(odd, { tools, tool_choice: "none" })).toBe(sent);
    expect(mlx.asked).not.toHaveProperty("tools");
  });

  test("quirks 12 and 15: an answer that is over before it has said a word but a thought", async () => {
    const short = String.raw`
: keepalive 1/1
data: {"id": "chatcmpl-98add429-9f30-45a1-a68c-2554e8ef45c0", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "reasoning": "\n"}}]}
data: {"id": "chatcmpl-98add429-9f30-45a1-a68c-2554e8ef45c0", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion.chunk", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [{"index": 0, "finish_reason": "length", "delta": {"role": "assistant"}}]}
data: {"id": "chatcmpl-98add429-9f30-45a1-a68c-2554e8ef45c0", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795247565, "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 11}}}
data: [DONE]
`;
    expect(await mlx.streamed(short, { max_tokens: 2 })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}
data: [DONE]
`);
  });

  test("quirk 17: the end of the connection in the middle, which is no other than its end after success", async () => {
    const [comment, first] = odd.trim().split("\n");
    expect(await mlx.streamed(`${comment}\n${first}`)).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}]}
data: {"error":{"message":"The runtime ended its answer before it was complete.","type":"server_error","param":null,"code":"upstream_error"}}
`);
  });
});

test("a text that mlx-lm continues, as it was recorded, comes without its first space, and with counts in an object of another kind", async () => {
  const sent = String.raw`
: keepalive 1/1
data: {"id": "cmpl-e908da76-9d3f-44d0-b895-492a3963814b", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "text_completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258867, "choices": [{"index": 0, "finish_reason": null, "text": "beta"}]}
data: {"id": "cmpl-e908da76-9d3f-44d0-b895-492a3963814b", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "text_completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258867, "choices": [{"index": 0, "finish_reason": null, "text": " gamma"}]}
data: {"id": "cmpl-e908da76-9d3f-44d0-b895-492a3963814b", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "text_completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258867, "choices": [{"index": 0, "finish_reason": null, "text": " delta"}]}
data: {"id": "cmpl-e908da76-9d3f-44d0-b895-492a3963814b", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "text_completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258867, "choices": [{"index": 0, "finish_reason": "length", "text": ""}]}
data: {"id": "cmpl-e908da76-9d3f-44d0-b895-492a3963814b", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258867, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}}}
data: [DONE]
`;
  expect(await mlx.continued(sent, { max_tokens: 3 })).toEqual([
    { kind: "text", text: "beta" },
    { kind: "text", text: " gamma" },
    { kind: "text", text: " delta" },
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 1, completionTokens: 3, cachedTokens: 0 },
  ]);
});

test("a text that mlx-lm continues, as it was recorded, has failed where the model thought: nothing comes in the place of its thoughts", async () => {
  const piece = (text: string): string =>
    String.raw`data: {"id": "cmpl-99cd0904-dc4c-4554-80fc-94498f20a389", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "text_completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258648, "choices": [{"index": 0, "finish_reason": null, "text": ${JSON.stringify(text)}}]}`;
  const pieces = [...Array<string>(6).fill(""), "\n\n", "Hello", " there", " my", " friend", "!"].map(piece);
  const sent = String.raw`
: keepalive 1/1
${pieces.join("\n")}
data: {"id": "cmpl-99cd0904-dc4c-4554-80fc-94498f20a389", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "text_completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258648, "choices": [{"index": 0, "finish_reason": "stop", "text": ""}]}
data: {"id": "cmpl-99cd0904-dc4c-4554-80fc-94498f20a389", "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit", "object": "chat.completion", "model": "mlx-community/Qwen3-8B-4bit", "created": 1795258648, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 15, "total_tokens": 16, "prompt_tokens_details": {"cached_tokens": 0}}}
data: [DONE]
`;
  await expect(mlx.continued(sent)).rejects.toMatchObject({ code: "upstream_error" });
});

test("a text that mlx-lm continues, as it was recorded, is empty after a prompt without a token, and all after it are refused", async () => {
  await expect(mlx.continued("", { prompt: "" })).rejects.toMatchObject({ code: "invalid_value", param: "prompt" });
  await expect(mlx.continued("")).rejects.toMatchObject({ code: "upstream_error" });
  const refusal = { status: 404, body: `{"error": "generation thread died"}` };
  await expect(mlx.continued(refusal)).rejects.toMatchObject({ code: "upstream_error" });
});
