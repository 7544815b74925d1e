import { describe, expect, test } from "vitest";
import { ollamaStage } from "./stage.ts";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged({ ...everyRuntime, "Ollama, native": () => ollamaStage({ engine: "native" }) });

interface Odd {
  readonly runtime: RuntimeName;
  readonly status: number;
  readonly body: string;
  /** The status, code and parameter that the client is told. */
  readonly told: readonly [status: number, code: string, param: string | null];
  /** What the message has to say. */
  readonly says?: RegExp;
}

/** No client is ever told these: they stand for paths, addresses and prompts in a runtime's own words. */
const inside = "/root/.ollama/models at 10.1.2.3";

const odd: Readonly<Record<string, Odd>> = {
  "malformed JSON, which llama-server calls its own failure": {
    runtime: "llama-server",
    status: 500,
    body: `{"error":{"code":500,"message":"[json.exception.parse_error.101] parse error at line 1, column 2: ${inside}","type":"server_error"}}`,
    told: [400, "bad_request", null],
  },
  "an image on a text model, which llama-server calls its own failure": {
    runtime: "llama-server",
    status: 500,
    body: `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}`,
    told: [400, "unsupported_value", "messages"],
  },
  "a number for a code, vLLM": {
    runtime: "vLLM",
    status: 400,
    body: `{"error":{"message":"temperature must be non-negative, ${inside}","type":"BadRequestError","param":"temperature","code":400}}`,
    told: [400, "bad_request", "temperature"],
  },
  "an unknown model, vLLM": {
    runtime: "vLLM",
    status: 404,
    body: `{"error":{"message":"The model \`m\` does not exist.","type":"NotFoundError","param":"model","code":404}}`,
    told: [404, "model_not_found", "model"],
  },
  "an unknown model, Ollama": {
    runtime: "Ollama",
    status: 404,
    body: `{"error":"model 'm' not found"}`,
    told: [404, "model_not_found", "model"],
  },
  "a failure in the middle of making an answer, which mlx-lm calls a 404": {
    runtime: "mlx-lm",
    status: 404,
    body: `{"error":"[metal::malloc] Attempting to allocate 9663676416 bytes, ${inside}"}`,
    told: [502, "upstream_error", null],
  },
  "a model that mlx-lm could not download": {
    runtime: "mlx-lm",
    status: 404,
    body: `{"error":"404 Client Error. Repository Not Found for url: https://huggingface.co/api/models/m/revision/main."}`,
    told: [404, "model_not_found", "model"],
  },
  "a bare string, LM Studio": {
    runtime: "LM Studio",
    status: 400,
    body: `{"error":"The model has crashed without additional information. ${inside}"}`,
    told: [400, "bad_request", null],
  },
  "a model that does not call tools, Ollama": {
    runtime: "Ollama",
    status: 400,
    body: `{"error":"registry.ollama.ai/library/m:latest does not support tools"}`,
    told: [400, "model_does_not_support_tools", "tools"],
  },
  "499 for a client that is still there, Ollama": {
    runtime: "Ollama",
    status: 499,
    body: `{"error":"request canceled"}`,
    told: [502, "upstream_error", null],
  },
  "llama-server's own JSON as a text, Ollama": {
    runtime: "Ollama",
    status: 400,
    body: `{"error":"{\\"error\\":{\\"code\\":400,\\"message\\":\\"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it\\",\\"type\\":\\"exceed_context_size_error\\",\\"n_prompt_tokens\\":5000,\\"n_ctx\\":4096}}"}`,
    told: [400, "context_length_exceeded", "messages"],
    says: /4096 tokens.* 5000\b/,
  },
  "a prompt that is too long, in words without numbers, Ollama": {
    runtime: "Ollama",
    status: 400,
    body: `{"error":"the prompt is longer than the context length currently available to the model; shorten the prompt"}`,
    told: [400, "context_length_exceeded", "messages"],
    says: /4096 tokens.*about \d+ \(estimated\)/,
  },
  "a prompt that is too long, in the words of Ollama's MLX engine": {
    runtime: "Ollama",
    status: 400,
    body: `{"error":"input length (5000 tokens) exceeds the model's maximum context length (4096 tokens)"}`,
    told: [400, "context_length_exceeded", "messages"],
    says: /4096 tokens.* 5000\b/,
  },
  "a prompt that is too long, llama-server": {
    runtime: "llama-server",
    status: 400,
    body: `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`,
    told: [400, "context_length_exceeded", "messages"],
    says: /8192 tokens.* 9000\b/,
  },
  "a prompt that is too long, vLLM": {
    runtime: "vLLM",
    status: 400,
    body: `{"error":{"message":"This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}}`,
    told: [400, "context_length_exceeded", "messages"],
    says: /32768 tokens.* (about )?\d{5}\b/,
  },
  "a prompt that is too long, LM Studio": {
    runtime: "LM Studio",
    status: 400,
    body: `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 8192 tokens, which is not enough."}`,
    told: [400, "context_length_exceeded", "messages"],
    says: /8192 tokens.* 9000\b/,
  },
  "a key that it wants, llama-server": {
    runtime: "llama-server",
    status: 401,
    body: `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`,
    told: [502, "upstream_error", null],
  },
  "a page of a proxy's, vLLM": {
    runtime: "vLLM",
    status: 502,
    body: `<html><body>502 Bad Gateway ${inside}</body></html>`,
    told: [502, "upstream_error", null],
  },
  "nothing at all, LM Studio": { runtime: "LM Studio", status: 500, body: "", told: [502, "upstream_error", null] },
};

describe("quirk 18: every error has message, type, param and code, and says what it means", () => {
  test.each(Object.entries(odd))("%s", async (_, { runtime, status, body, told, says }) => {
    const refused = await on(runtime).refused({ status, body });
    const [toldStatus, code, param] = told;
    expect(refused.status).toBe(toldStatus);
    const type = toldStatus >= 500 ? "server_error" : "invalid_request_error";
    expect(refused.error).toEqual({ message: expect.stringMatching(says ?? /./), type, param, code });
    expect(JSON.stringify(refused.error)).not.toContain(inside);
  });

  test("too much to do is a 503 with a time to try again, Ollama", async () => {
    const body = `{"error":"server busy, please try again.  maximum pending requests exceeded"}`;
    const refused = await on("Ollama").refused({ status: 503, body });
    expect(refused).toMatchObject({ status: 503, retryAfter: "2", error: { code: "server_is_overloaded" } });
  });

  test("a model that llama-server is still loading is waited for", async () => {
    let asked = 0;
    on("llama-server").play((chat) => {
      asked += 1;
      const error = { code: 503, message: "Loading model", type: "unavailable_error" };
      if (asked === 1)
        return chat.refuseWith(503, { contentType: "application/json", body: JSON.stringify({ error }) });
      chat.say("Hello");
      chat.done();
    });
    expect(await on("llama-server").endpoint.answer({ model: "m", says: "Hi" })).toBe("Hello");
    expect(asked).toBe(2);
  });

  test("a prompt that does not fit is refused by every runtime that knows it, and cut by none", async () => {
    const told = { status: 400, error: { code: "context_length_exceeded" } };
    const says = (words: number) => ({ messages: [{ role: "user", content: "word ".repeat(words) }] });
    expect(await on("Ollama").refused(undefined, says(4_097))).toMatchObject(told);
    expect(await on("Ollama, native").refused(undefined, says(4_097))).toMatchObject(told);
    expect(await on("vLLM").refused(undefined, says(32_769))).toMatchObject(told);
    expect(await on("llama-server").refused(undefined, says(8_193))).toMatchObject(told);
    expect(await on("LM Studio").refused(undefined, says(8_193))).toMatchObject(told);
  });
});

describe("quirk 19: official clients repeat what may work at the second try, and nothing that would fail again", () => {
  test.each<[RuntimeName, number, string, { status: number; retryAfter: string | null; shouldRetry: string | null }]>([
    ["Ollama", 503, `{"error":"server busy"}`, { status: 503, retryAfter: "2", shouldRetry: null }],
    [
      "Ollama",
      500,
      `{"error":"model runner has unexpectedly stopped"}`,
      { status: 502, retryAfter: null, shouldRetry: null },
    ],
    ["Ollama", 404, `{"error":"model 'm' not found"}`, { status: 404, retryAfter: null, shouldRetry: null }],
    ["vLLM", 400, `{"error":{"message":"no","code":400}}`, { status: 400, retryAfter: null, shouldRetry: null }],
    // By its status alone it would be repeated.
    [
      "llama-server",
      500,
      `{"error":{"code":500,"message":"parse error"}}`,
      { status: 400, retryAfter: null, shouldRetry: null },
    ],
  ])("%s says %i %s, and the client is told %j", async (runtime, status, body, told) => {
    expect(await on(runtime).refused({ status, body })).toMatchObject(told);
  });
});
