import { expect, test } from "vitest";
import { ollamaStatusFault } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";

/** As Ollama 0.33.0-rc2 passes on what the llama-server below it refuses. */
function passedOn(code: number, message: string, more: object = { type: "invalid_request_error" }): string {
  return JSON.stringify({ error: JSON.stringify({ error: { code, message, ...more } }) });
}

test.each([
  [
    "an image, by the engine below",
    500,
    passedOn(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", {
      type: "server_error",
    }),
    { code: "unsupported_value", param: "messages", message: "The model does not accept images." },
  ],
  [
    "an image, with a template of its own",
    400,
    passedOn(400, "Multimodal data provided, but model does not support multimodal requests."),
    { code: "unsupported_value", param: "messages", message: "The model does not accept images." },
  ],
  [
    "likelihoods together with tools",
    400,
    passedOn(400, "logprobs is not supported with tools + stream"),
    { code: "unsupported_parameter", param: "logprobs" },
  ],
  ["a model that is not there", 404, '{"error":"model \'nope:latest\' not found"}', { code: "model_not_found" }],
  [
    "tools",
    400,
    '{"error":"m:latest does not support tools"}',
    { code: "model_does_not_support_tools", param: "tools" },
  ],
  [
    "thinking",
    400,
    '{"error":"m does not support thinking"}',
    { code: "unsupported_value", param: "reasoning_effort" },
  ],
  ["chats", 400, '{"error":"m does not support chat"}', { code: "unsupported_value", param: "model" }],
  [
    "a prompt that is too long, without numbers",
    400,
    '{"error":"the prompt is longer than the context length currently available to the model; shorten the prompt"}',
    { code: "context_length_exceeded", overflow: {} },
  ],
  [
    "a prompt that is too long, for the MLX engine",
    400,
    '{"error":"input length (5000 tokens) exceeds the model\'s maximum context length (4096 tokens)"}',
    { code: "context_length_exceeded", overflow: { promptTokens: 5_000, windowTokens: 4_096 } },
  ],
  ["too much to do", 503, '{"error":"server busy, please try again."}', { code: "server_is_overloaded" }],
  ["a client that Ollama takes for gone", 499, '{"error":"request canceled"}', { code: "upstream_error" }],
  ["an engine that stopped", 500, '{"error":"model runner has unexpectedly stopped"}', { code: "upstream_error" }],
  ["a page of a proxy's", 502, "<html>no</html>", { code: "upstream_error" }],
  ["something else", 400, '{"error":"something else"}', { code: "bad_request", param: undefined }],
  ["whoever comes from elsewhere", 403, "", { code: "upstream_error" }],
])("a refusal of Ollama's is told as what it is: %s", (_, status, text, fault) => {
  expect(ollamaStatusFault({ status, text })).toMatchObject(fault);
});

test("a refusal of Ollama's for a prompt that is too long has both numbers of the engine below", () => {
  const text = passedOn(
    400,
    "request (14003 tokens) exceeds the available context size (4096 tokens), try increasing it",
    { type: "exceed_context_size_error", n_prompt_tokens: 14_003, n_ctx: 4_096 },
  );
  expect(ollamaStatusFault({ status: 400, text })).toMatchObject({
    code: "context_length_exceeded",
    overflow: { promptTokens: 14_003, windowTokens: 4_096 },
  });
});

test("a refusal of Ollama's is of no prompt that is too long where Ollama itself failed", () => {
  const text = '{"error":"llama runner: failed to create context with the context size 131072"}';
  expect(ollamaStatusFault({ status: 500, text })).toMatchObject({ code: "upstream_error" });
});

test.each([[401], [403]])(
  "a refusal of Ollama's of the agent itself (%i) tells the operator which setting gives a key",
  (status) => {
    const fault = ollamaStatusFault({ status, text: '{"error":"unauthorized"}' });
    expect(fault).toMatchObject({ code: "upstream_error", message: "The runtime refused the agent of this machine." });
    expect(fault.internal).toContain("TRUNKLINE_RUNTIME_KEY");
  },
);
