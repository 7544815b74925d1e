import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { publicDocument } from "../../services/gateway/openapi/public-document.ts";
import { DescribedApi } from "../harness/described-api.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { issueKey } from "../harness/trunkline-command.ts";

const bodyBytesMax = 20_000;
const document = publicDocument({ bodyBytesMax, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" });
const api = new DescribedApi(document);

const chat = "/v1/chat/completions";
const responses = "/v1/responses";
const messages = "/v1/messages";
const count = "/v1/messages/count_tokens";
const completions = "/v1/completions";
const embeddings = "/v1/embeddings";

const tool = { type: "function", function: { name: "get_weather", parameters: { type: "object", properties: {} } } };
const says = (content: string) => ({ model: "scripted", messages: [{ role: "user", content }] });
/** The Messages API needs a longest answer. */
const writes = (content: string) => ({ ...says(content), max_tokens: 1_000 });
const prompts = (prompt: string) => ({ model: "scripted", prompt });
const inputs = (input: string) => ({ model: "scripted", input });
const custom = { type: "custom", custom: { name: "patch" } };
const calls = { tools: [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} } }] };
const anthropic = { headers: { "anthropic-version": "2023-06-01" } };
const ownTool = { tools: [{ name: "get_weather", input_schema: { type: "object", properties: {} } }] };
const embeds = { model: "scripted:embed", input: "The sky is blue." };

let up: UpProcess;
let root: string;
beforeAll(async () => {
  up = await startUp({ TRUNKLINE_BODY_BYTES_MAX: String(bodyBytesMax) });
  root = new URL(up.endpoint.baseUrl).origin;
});
afterAll(() => up[Symbol.asyncDispose]());

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

interface Wish {
  readonly method?: "GET" | "POST" | "DELETE";
  readonly body?: object | string;
  readonly key?: string | undefined;
  readonly headers?: Record<string, string>;
  /** The path as the document writes it, where that differs. */
  readonly as?: string;
}

/** Asks, and insists that what comes is just what the document says. */
async function asked(path: string, wish: Wish = {}): Promise<Answer> {
  const { body, as = path, headers = {} } = wish;
  const { method = body === undefined ? "GET" : "POST" } = wish;
  const key = "key" in wish ? wish.key : up.endpoint.key;
  const response = await fetch(root + path, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const answer = { status: response.status, headers: response.headers, body: await response.text() };
  expect(
    api.faultsOf({ method: method === "GET" ? "get" : method === "POST" ? "post" : "delete", path: as }, answer),
  ).toEqual([]);
  return answer;
}

/** The code of an error, which stands beside the words of an error for Ollama's clients. */
const codeOf = ({ body }: Answer): unknown => {
  const told = JSON.parse(body) as { error?: { code?: unknown } | string; code?: unknown };
  return typeof told.error === "string" ? told.code : told.error?.code;
};

const issuedKey = async (...flags: string[]): Promise<string> =>
  (await issueKey({ TRUNKLINE_STATE_DIR: up.stateDir }, ...flags)).key;

/** What a stream that is whole ends in. */
const endOf: Readonly<Record<string, RegExp>> = {
  [chat]: /data: \[DONE\]\n\n$/,
  [completions]: /data: \[DONE\]\n\n$/,
  [messages]: /event: message_stop\ndata: .*\n\n$/,
  [responses]: /event: response\.(?:completed|incomplete)\ndata: .*\n\n$/,
};
const never = /(?!)/;

describe("answers", () => {
  const usage = { stream_options: { include_usage: true } };
  const answered: [string, string, Wish][] = [
    ["a text", chat, { body: says("Hello!") }],
    ["a stream", chat, { body: { ...says("Hello!"), stream: true } }],
    ["a stream with its usage", chat, { body: { ...says("Hello!"), stream: true, ...usage } }],
    ["thoughts", chat, { body: says("/script tokens=2 think=2") }],
    ["a stream of thoughts", chat, { body: { ...says("/script tokens=2 think=2"), stream: true, ...usage } }],
    ["calls of tools", chat, { body: { ...says("/script tokens=0 tool=get_weather"), tools: [tool] } }],
    [
      "a text and a call, streamed",
      chat,
      { body: { ...says('/script tokens=2 tool=get_weather args={"a":1}'), tools: [tool], stream: true } },
    ],
    ["a call of a custom tool", chat, { body: { ...says("/script tokens=0 tool=patch"), tools: [tool, custom] } }],
    [
      "a call of a custom tool, streamed",
      chat,
      { body: { ...says("/script tokens=0 tool=patch"), tools: [custom], stream: true } },
    ],
    ["two answers", chat, { body: { ...says("/script tokens=2"), n: 2 } }],
    ["a stream of two answers", chat, { body: { ...says("/script tokens=2"), n: 2, stream: true, ...usage } }],
    ["a text that was cut", chat, { body: { ...says("/script tokens=9"), max_tokens: 3 } }],
    ["fields that are ignored", chat, { body: { ...says("Hello!"), user: "ann", metadata: {} } }],
    ["a response", responses, { body: inputs("Hello!") }],
    ["a response of thoughts", responses, { body: inputs("/script tokens=2 think=2") }],
    ["a stream of a response", responses, { body: { ...inputs("/script tokens=2 think=2"), stream: true } }],
    ["a response that calls", responses, { body: { ...inputs("/script tokens=0 tool=get_weather"), ...calls } }],
    [
      "a response that says something and calls, streamed",
      responses,
      { body: { ...inputs("/script tokens=2 tool=get_weather"), ...calls, stream: true } },
    ],
    ["a response that was cut", responses, { body: { ...inputs("/script tokens=9"), max_output_tokens: 3 } }],
    [
      "a stream of a response that was cut",
      responses,
      { body: { ...inputs("/script tokens=9"), max_output_tokens: 3, stream: true, store: true } },
    ],
    ["a message", messages, { body: writes("Hello!") }],
    ["a stream of a message", messages, { body: { ...writes("/script tokens=2 think=2"), stream: true } }],
    ["a message that calls", messages, { body: { ...writes("/script tokens=0 tool=get_weather"), ...ownTool } }],
    [
      "a message that says something and calls, streamed",
      messages,
      { body: { ...writes("/script tokens=2 tool=get_weather"), ...ownTool, stream: true } },
    ],
    ["a message that was cut", messages, { body: { ...writes("/script tokens=9"), max_tokens: 3, metadata: {} } }],
    ["the tokens of a message", count, { body: says("Hello!") }],
    ["a continued text", completions, { body: { model: "scripted", prompt: "/script tokens=3" } }],
    [
      "two continued texts",
      completions,
      { body: { model: "scripted", prompt: ["/script tokens=3", "b"], n: 2, echo: true } },
    ],
    [
      "a continued text, streamed",
      completions,
      { body: { model: "scripted", prompt: "/script tokens=3", stream: true, ...usage } },
    ],
    ["a vector", embeddings, { body: embeds }],
    ["several vectors as base64", embeddings, { body: { ...embeds, input: ["a", "b"], encoding_format: "base64" } }],
    ["shorter vectors", embeddings, { body: { ...embeds, dimensions: 8, user: "ann" } }],
    ["a chat in lines", "/api/chat", { body: says("/script tokens=2 think=2") }],
    [
      "a chat that calls, in lines",
      "/api/chat",
      { body: { ...says("/script tokens=1 tool=get_weather"), tools: [tool] } },
    ],
    ["a chat whole, for Ollama's clients", "/api/chat", { body: { ...says("Hello!"), stream: false, keep_alive: 0 } }],
    ["a load", "/api/chat", { body: { model: "scripted" } }],
    ["a prompt in lines", "/api/generate", { body: prompts("/script tokens=2 think=2") }],
    ["a prompt whole", "/api/generate", { body: { ...prompts("/script tokens=9"), stream: false, raw: true } }],
    ["vectors for Ollama's clients", "/api/embed", { body: embeds }],
    ["a vector for Ollama's clients", "/api/embeddings", { body: { model: "scripted:embed", prompt: "a" } }],
    ["the models with their tags", "/api/tags", {}],
    ["the models in memory", "/api/ps", {}],
    ["the properties of a model", "/api/show", { body: { model: "scripted:latest" } }],
    ["the version of Ollama's API", "/api/version", {}],
    ["the models", "/v1/models", {}],
    ["the models for Anthropic's clients", "/v1/models", anthropic],
    ["a model for Anthropic's clients", "/v1/models/scripted", { as: "/v1/models/{id}", ...anthropic }],
    ["a model", "/v1/models/scripted", { as: "/v1/models/{id}" }],
    ["a model of MLX", "/v1/models/scripted%3Amlx", { as: "/v1/models/{id}" }],
    ["that it runs", "/healthz", { key: undefined }],
    ["that it can serve", "/readyz", { key: undefined }],
  ];
  test.each(answered)("%s", async (_what, path, wish) => {
    const { status, body, headers } = await asked(path, wish);
    expect(status).toBe(200);
    if (headers.get("content-type")?.startsWith("text/event-stream")) expect(body).toMatch(endOf[path] ?? never);
  });

  test("stored responses, and turns that go on from them", async () => {
    const key = await issuedKey("--store-responses");
    const input = "/script tokens=1 think=1 tool=get_weather";
    const first = await asked(responses, { body: { ...inputs(input), ...calls }, key });
    const { id, output } = JSON.parse(first.body) as { id: string; output: { call_id?: string }[] };
    const result = { type: "function_call_output", call_id: output.at(-1)?.call_id, output: "7 degrees" };
    const going = { model: "scripted", previous_response_id: id, input: [result], ...calls };
    for (const stream of [false, true])
      expect((await asked(responses, { body: { ...going, stream }, key })).status).toBe(200);
    const as = "/v1/responses/{id}";
    const path = `/v1/responses/${id}`;
    expect((await asked(path, { key, as })).body).toBe(first.body);
    const items = { key, as: `${as}/input_items` };
    expect((await asked(`${path}/input_items?order=asc&limit=1`, items)).status).toBe(200);
    expect((await asked(`${path}/input_items?limit=0`, items)).status).toBe(400);
    expect((await asked(`${path}?stream=true`, { key, as })).status).toBe(400);
    for (const status of [200, 404]) expect((await asked(path, { method: "DELETE", key, as })).status).toBe(status);
    expect(codeOf(await asked(path, { key, as }))).toBe("response_not_found");
    expect(codeOf(await asked(responses, { body: going, key }))).toBe("response_not_found");
  });

  test("how a key stands with its limits", async () => {
    const key = await issuedKey("--rpm", "100", "--tpm", "100000");
    const { headers } = await asked(chat, { body: says("Hello!"), key });
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("99");
    const streamed = await asked(chat, { body: { ...says("Hello!"), stream: true }, key });
    expect([...streamed.headers.keys()]).toEqual(expect.arrayContaining(ownHeadersOf(headers)));
    // One more is free again every 0.6 s.
    expect(streamed.headers.get("x-ratelimit-remaining-requests")).toMatch(/^9[89]$/);
    expect(streamed.headers.get("x-trunkline-machine")).toBe(headers.get("x-trunkline-machine"));
    await asked("/v1/models", { key });
    await asked("/v1/models/nothing", { key, as: "/v1/models/{id}" });
    await asked(embeddings, { key, body: {} });
  });
});

/** What an answer tells in headers of our own, however it is sent. */
function ownHeadersOf(headers: Headers): string[] {
  return [...headers.keys()].filter((name) => /^(?:x-|openai-)/.test(name));
}

describe("refusals", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const refused: [string, number, string | null, string, Wish][] = [
    ["an unload", 403, "insufficient_permissions", "/api/chat", { body: { model: "scripted", keep_alive: 0 } }],
    ["a template", 400, "unsupported_value", "/api/generate", { body: { ...prompts("a"), template: "b" } }],
    ["no model to show", 404, "model_not_found", "/api/show", { body: { model: "nobody-has-it" } }],
    ["a list without a key", 401, "key_invalid", "/api/tags", { key: undefined }],
    ["without a key", 401, "key_invalid", chat, { body: says("Hello!"), key: undefined }],
    ["with a wrong key", 401, "key_invalid", "/v1/models", { key: "sk-wrong" }],
    ["a body that is no JSON", 400, null, chat, { body: "{" }],
    [
      "a body of another type",
      415,
      "unsupported_media_type",
      chat,
      { body: "a=1", headers: { "content-type": "text/plain" } },
    ],
    ["a body that is too large", 413, "request_too_large", chat, { body: says("a".repeat(bodyBytesMax)) }],
    ["no messages", 400, "missing_required_parameter", chat, { body: { model: "scripted" } }],
    ["a wrong type", 400, "invalid_type", chat, { body: { ...says(""), stream: "yes" } }],
    ["a wrong value", 400, "invalid_value", chat, { body: { ...says(""), reasoning_effort: "huge" } }],
    ["too small a number", 400, "integer_below_min_value", chat, { body: { ...says(""), n: 0 } }],
    ["too large a number", 400, "integer_above_max_value", chat, { body: { ...says(""), n: 129 } }],
    ["too cold", 400, "decimal_below_min_value", chat, { body: { ...says(""), temperature: -1 } }],
    [
      "too hot",
      400,
      "decimal_above_max_value",
      completions,
      { body: { model: "scripted", prompt: "a", temperature: 3 } },
    ],
    ["items that are none", 400, "invalid_value", responses, { body: { model: "scripted", input: [{ type: "a" }] } }],
    [
      "what is not kept",
      400,
      "unsupported_parameter",
      responses,
      { body: { ...inputs("a"), previous_response_id: "r" } },
    ],
    ["a message without a key", 401, "key_invalid", messages, { body: writes("Hello!"), key: undefined }],
    [
      "a block that is none",
      400,
      "invalid_value",
      messages,
      { body: { ...writes(""), messages: [{ role: "user", content: [{ type: "a" }] }] } },
    ],
    [
      "a message of what nobody has",
      404,
      "model_not_found",
      messages,
      { body: { ...writes(""), model: "nobody-has-it" } },
    ],
    ["a count for what nobody may use", 400, "missing_required_parameter", count, { body: { model: "scripted" } }],
    [
      "to look up what nobody has, for Anthropic's clients",
      404,
      "model_not_found",
      "/v1/models/nobody-has-it",
      { as: "/v1/models/{id}", ...anthropic },
    ],
    ["an empty list", 400, "empty_array", chat, { body: { model: "scripted", messages: [] } }],
    [
      "too long a list",
      400,
      "array_above_max_length",
      chat,
      { body: { ...says(""), stop: "abcdefghijklmnopq".split("") } },
    ],
    ["too long a name", 400, "string_too_long", embeddings, { body: { ...embeds, model: "a".repeat(300) } }],
    ["what was replaced", 400, "unsupported_parameter", chat, { body: { ...says(""), functions: [tool.function] } }],
    ["what the runtime cannot do", 400, "unsupported_parameter", chat, { body: { ...says(""), logprobs: true } }],
    [
      "an answer of a tool to nothing",
      400,
      null,
      chat,
      { body: { model: "scripted", messages: [{ role: "tool", content: "a", tool_call_id: "b" }] } },
    ],
    [
      "tools where none can be",
      400,
      "model_does_not_support_tools",
      chat,
      { body: { ...says(""), model: "scripted:plain", tools: [tool] } },
    ],
    [
      "an image where none is seen",
      400,
      "unsupported_value",
      chat,
      { body: { model: "scripted", messages: [{ role: "user", content: [image] }] } },
    ],
    [
      "a chat with a model of vectors",
      400,
      "unsupported_value",
      chat,
      { body: { ...says(""), model: "scripted:embed" } },
    ],
    ["a model that nobody has", 404, "model_not_found", chat, { body: { ...says(""), model: "nobody-has-it" } }],
    ["to look up what nobody has", 404, "model_not_found", "/v1/models/nobody-has-it", { as: "/v1/models/{id}" }],
    ["what a runtime fails in", 502, "upstream_error", chat, { body: says("/script tokens=2 fail_at=0") }],
    ["an odd URL", 400, "bad_request", "/v1/models/%00", { as: "/v1/models/{id}" }],
    ["a URL that is too long", 414, "uri_too_long", `/v1/models?${"a".repeat(9_000)}`, { as: "/v1/models" }],
    ["too many headers", 431, "headers_too_large", "/healthz", { headers: { "x-a": "a".repeat(17_000) } }],
  ];
  test.each(refused)("%s", async (_what, status, code, path, wish) => {
    const answer = await asked(path, wish);
    expect([answer.status, codeOf(answer)]).toEqual([status, code]);
  });

  test("too many requests of a key, and all its tokens", async () => {
    const hurried = await issuedKey("--rpm", "1");
    await asked(chat, { body: says("Hello!"), key: hurried });
    const soon = await asked(chat, { body: says("Hello!"), key: hurried });
    expect([soon.status, codeOf(soon)]).toEqual([429, "rate_limit_exceeded"]);
    expect(Number(soon.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("the rest of a stream that breaks", async () => {
    const { status, body } = await asked(chat, { body: { ...says("/script tokens=4 fail_at=2"), stream: true } });
    expect(status).toBe(200);
    expect(body).toContain('"code":"upstream_error"');
    expect(body).not.toContain("[DONE]");
  });

  test("the rest of a response that breaks", async () => {
    const { status, body } = await asked(responses, {
      body: { ...inputs("/script tokens=4 fail_at=2"), stream: true },
    });
    expect(status).toBe(200);
    expect(body).toMatch(/event: error\ndata: .*"code":"upstream_error".*\n\n$/);
    expect(body).not.toContain("response.completed");
  });

  test("the rest of a message that breaks", async () => {
    const { status, body } = await asked(messages, { body: { ...writes("/script tokens=4 fail_at=2"), stream: true } });
    expect(status).toBe(200);
    expect(body).toMatch(/event: error\ndata: .*"code":"upstream_error".*\n\n$/);
    expect(body).not.toContain("message_stop");
  });

  test("an unknown operation has the same errors", async () => {
    for (const [path, method] of [
      ["/nothing", "GET"],
      ["/v1/models", "DELETE"],
    ] as const) {
      const response = await fetch(root + path, { method });
      expect(api.misfits({ $ref: "#/components/schemas/Error" }, await response.json())).toEqual([]);
    }
  });
});

const examples = Object.entries(document.paths).flatMap(([path, { post }]) =>
  Object.entries(post?.requestBody?.content["application/json"]?.examples ?? {}).map(
    ([name, { value }]): [string, string, object] => [name, path, Object(value)],
  ),
);

describe("the examples", () => {
  test("the examples are there for every request", () =>
    expect(new Set(examples.map(([, path]) => path)).size).toBe(20));

  test.each(examples)("%s at %s is taken", async (name, path, body) => {
    // The demonstration makes no JSON by a schema, and says so of that field and of nothing else.
    const answer = await asked(path, { body });
    const refusal = answer.status === 200 ? undefined : (JSON.parse(answer.body) as { error: { param: string } }).error;
    const formats: Readonly<Record<string, string>> = {
      [responses]: "text.format",
      [messages]: "output_config.format",
    };
    const format = formats[path] ?? "response_format";
    if (name === "json") expect(refusal?.param ?? format).toBe(format);
    // The demonstration has chats and vectors only, so a request that is right finds no model for anything else.
    else if (/^\/v1\/(?:audio|images)\/|moderations|tokenize/.test(path)) expect(refusal?.param).toBe("model");
    // No conversation is stored for this key.
    else if (/conversations/.test(path)) expect([403, 404]).toContain(answer.status);
    else expect(refusal).toBeUndefined();
    expect(answer.headers.get("x-trunkline-ignored")).toBeNull();
    expect(
      api.misfits(api.operation({ method: "post", path }).requestBody?.content["application/json"]?.schema ?? {}, body),
    ).toEqual([]);
  });
});
