import { expect, test } from "vitest";
import { ModelLoading, PathUnknown, refusalFault } from "../../../services/agent/runtimes/openai/openai-fault.ts";

function refused(status: number, error: unknown) {
  return refusalFault({ status, text: typeof error === "string" ? error : JSON.stringify(error) });
}

test.each([
  [
    "vLLM, with the limit of the answer counted in",
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
    { promptTokens: 4900, windowTokens: 4096 },
  ],
  [
    "vLLM, newer",
    "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your prompt contains at least 3997 input tokens, for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
    { promptTokens: 3997, windowTokens: 4096 },
  ],
  [
    "vLLM, which counts no further than its window",
    "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=8193)",
    { windowTokens: 8192 },
  ],
  [
    "vLLM, which counts characters first",
    "This model's maximum context length is 8192 tokens. However, your prompt contains 200050 characters (more than 139264 characters, which is the upper bound for 8192 input tokens). Please reduce the length of the input prompt. (parameter=input_text, value=200050)",
    { windowTokens: 8192 },
  ],
  [
    "vLLM, between",
    "You passed 4900 input tokens and requested 0 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens. Please reduce the length of the input prompt.",
    { promptTokens: 4900, windowTokens: 4096 },
  ],
  [
    "vLLM, for a text so long that it was not even counted",
    "You passed 400000 input characters and requested 0 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens (at most 32768 characters). Please reduce the length of the input prompt.",
    { windowTokens: 4096 },
  ],
  [
    "vLLM's engine",
    "The decoder prompt (length 4900) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    { promptTokens: 4900, windowTokens: 4096 },
  ],
  [
    "OpenAI itself",
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 4900 tokens. Please reduce the length of the messages.",
    { promptTokens: 4900, windowTokens: 4096 },
  ],
  [
    "LM Studio",
    "Trying to keep the first 4900 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    { promptTokens: 4900, windowTokens: 4096 },
  ],
  [
    "LM Studio, newer",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 4900>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
    { promptTokens: 4900, windowTokens: 4096 },
  ],
  ["LM Studio's MLX engine", "Context size has been exceeded.", {}],
])("a refusal for a prompt that is too long tells what numbers it has: %s", (_, message, overflow) => {
  for (const form of [{ error: { message, code: 400 } }, { error: message }]) {
    const fault = refused(400, form);
    expect(fault.code).toBe("context_length_exceeded");
    expect(fault).toHaveProperty("overflow", overflow);
  }
});

test("a refusal for a prompt that is too long has both numbers in fields of their own in llama-server's", () => {
  const error = {
    code: 400,
    message: "the request exceeds the available context size",
    type: "exceed_context_size_error",
    n_prompt_tokens: 4900,
    n_ctx: 4096,
  };
  expect(refused(400, { error })).toMatchObject({
    code: "context_length_exceeded",
    overflow: { promptTokens: 4900, windowTokens: 4096 },
  });
});

const noModel = { code: "model_not_found", param: "model" };
const noSuchWork = { code: "unsupported_value", param: "model" };
const wrongMessages = { code: "unsupported_value", param: "messages" };
const failed = { code: "upstream_error" };
test.each([
  [
    "vLLM without tools",
    400,
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    { code: "model_does_not_support_tools", param: "tools" },
  ],
  ["a model without chat", 400, "The model does not support Chat Completions API", noSuchWork],
  [
    "llama-server for embeddings only",
    501,
    "This server does not support chat completions. Start it without `--embeddings`",
    { ...noSuchWork, message: "The model does not support chat." },
  ],
  [
    "llama-server without embeddings",
    501,
    "This server does not support embeddings. Start it with `--embeddings`",
    { ...noSuchWork, message: "The model does not embed." },
  ],
  [
    "llama-server without vision",
    500,
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    wrongMessages,
  ],
  [
    "llama-server on broken JSON",
    500,
    "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error",
    { code: "bad_request" },
  ],
  [
    "a template that wants turns to alternate",
    500,
    "Conversation roles must alternate user/assistant/user/assistant",
    { code: "bad_request" },
  ],
  [
    "an effort that is not known",
    400,
    "1 validation error: {'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\"}",
    { code: "unsupported_value", param: "reasoning_effort" },
  ],
  [
    "vectors of another length",
    400,
    'Model "m" does not support matryoshka representation, changing output dimensions will lead to poor results.',
    { code: "unsupported_parameter", param: "dimensions" },
  ],
  ["vLLM's unknown model", 404, "The model `m` does not exist.", noModel],
  ["LM Studio's unknown model", 400, 'Invalid model identifier "m". Please specify a valid downloaded model', noModel],
  [
    "mlx-lm's unknown model",
    404,
    "404 Client Error. Repository Not Found for url: https://huggingface.co/api/models/m",
    noModel,
  ],
  [
    "mlx-lm's unknown model, without a way to Hugging Face",
    404,
    "Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and outgoing traffic has been disabled. To enable repo look-ups and downloads online, set 'HF_HUB_OFFLINE=0' as environment variable.",
    noModel,
  ],
  ["a router's unknown model", 400, "model 'nope' not found", noModel],
  [
    "llama-server on a schema that is none",
    400,
    "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #: unrecognized type nonsense",
    { code: "invalid_value", internal: "the runtime answered 400 (its grammar)" },
  ],
  ["vLLM on a schema that is none", 400, "Grammar error: Invalid type: nonsense", { code: "invalid_value" }],
  [
    "llama-server on calls at the end",
    400,
    "Cannot continue an assistant message that contains tool calls.",
    wrongMessages,
  ],
  ["vLLM without vision", 400, "qwen3 is not a multimodal model", wrongMessages],
  ["mlx-lm's template", 404, "Cannot apply chat template to an empty conversation.", failed],
  [
    "llama-server on two beginnings of an answer",
    400,
    "Cannot have 2 or more assistant messages at the end of the list.",
    wrongMessages,
  ],
  ["mlx-lm's failure", 404, "[metal::malloc] Attempting to allocate 99 bytes", failed],
  ["a wrong path", 404, "404 page not found", failed],
  ["too much to do", 503, "busy", { code: "server_is_overloaded" }],
  ["too many requests", 429, "slow down", { code: "server_is_overloaded" }],
  ["a crash", 500, "CUDA error: out of memory", failed],
  ["something else", 400, "no", { code: "bad_request" }],
  ["a body that is too large", 413, "too large", { code: "bad_request" }],
])("a refusal is understood, in every form that servers give it: %s", (_, status, message, fault) => {
  const forms = [{ error: { message, type: "x", code: status } }, { error: message }, { message }, message];
  for (const form of forms) expect(refused(status, form)).toMatchObject(fault);
});

test.each([
  ["vLLM", { detail: "Not Found" }],
  ["llama-server", { error: { message: "File Not Found", type: "not_found_error", code: 404 } }],
  ["whisper.cpp", "File Not Found (/v1/audio/translations)"],
])("a refusal of an interface that %s does not have is told apart from a model that does not exist", (_, body) => {
  expect(refused(404, body)).toBeInstanceOf(PathUnknown);
  expect(refused(404, { error: "The model `m` does not exist." })).not.toBeInstanceOf(PathUnknown);
});

test("a refusal names the field that the server names, where it is one of the request's", () => {
  expect(refused(400, { error: { message: "no", param: "top_p" } })).toMatchObject({ param: "top_p" });
  expect(refused(400, { error: { message: "no", param: "/home/secret" } })).toMatchObject({ param: undefined });
});

test.each([[401], [403]])(
  "a refusal of the agent itself (%i) tells the operator which setting gives a key",
  (status) => {
    const fault = refused(status, { error: { message: "Invalid API Key", code: status } });
    expect(fault.code).toBe("upstream_error");
    expect(fault.internal).toContain("TRUNKLINE_RUNTIME_KEY");
    expect(fault.message).not.toContain("KEY");
  },
);

test("a refusal because the model is still loading is no refusal for good", () => {
  const error = { code: 503, message: "Loading model", type: "unavailable_error" };
  expect(refused(503, { error })).toBeInstanceOf(ModelLoading);
  expect(refused(503, { error: { ...error, message: "busy" } })).not.toBeInstanceOf(ModelLoading);
});

test("a refusal keeps the server's own words inside, and out of the log", () => {
  for (const status of [400, 404, 500, 503]) {
    const fault = refused(status, { error: { message: "/home/me said secret prompt" } });
    expect(`${fault.message} ${fault.internal} ${String(fault.cause)}`).not.toContain("secret");
  }
});
