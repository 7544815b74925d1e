import { afterAll, beforeAll, expect, test } from "vitest";
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
  readonly method?: "get" | "post" | "delete";
  readonly body?: object | string | undefined;
  readonly key?: string | undefined;
  readonly headers?: Record<string, string>;
  /** The path as the document writes it, where that differs. */
  readonly as?: string;
}

/** Asks, and insists that what comes is just what the document says. */
async function asked(path: string, wish: Wish = {}): Promise<Answer> {
  const { body, as = path, headers = {} } = wish;
  const { method = body === undefined ? "get" : "post" } = wish;
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
  expect(api.faultsOf({ method, path: as }, answer)).toEqual([]);
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

const asStream = { stream: true, stream_options: { include_usage: true } };
const answered: [string, string, (object | undefined)?, Wish?][] = [
  ["a text", chat, says("Hello!")],
  ["a stream", chat, { ...says("Hello!"), stream: true }],
  ["a stream with its usage", chat, { ...says("Hello!"), ...asStream }],
  ["thoughts", chat, says("/script tokens=2 think=2")],
  ["a stream of thoughts", chat, { ...says("/script tokens=2 think=2"), ...asStream }],
  ["calls of tools", chat, { ...says("/script tokens=0 tool=get_weather"), tools: [tool] }],
  [
    "a streamed text and call",
    chat,
    { ...says('/script tokens=2 tool=get_weather args={"a":1}'), tools: [tool], stream: true },
  ],
  ["a call of a custom tool", chat, { ...says("/script tokens=0 tool=patch"), tools: [tool, custom] }],
  ["a streamed call of a custom tool", chat, { ...says("/script tokens=0 tool=patch"), tools: [custom], stream: true }],
  ["two answers", chat, { ...says("/script tokens=2"), n: 2 }],
  ["a stream of two answers", chat, { ...says("/script tokens=2"), n: 2, ...asStream }],
  ["a text that was cut", chat, { ...says("/script tokens=9"), max_tokens: 3 }],
  ["fields that are ignored", chat, { ...says("Hello!"), user: "ann", metadata: {} }],
  ["a response", responses, inputs("Hello!")],
  ["a response of thoughts", responses, inputs("/script tokens=2 think=2")],
  ["a stream of a response", responses, { ...inputs("/script tokens=2 think=2"), stream: true }],
  ["a response that calls", responses, { ...inputs("/script tokens=0 tool=get_weather"), ...calls }],
  [
    "a streamed response with a text and a call",
    responses,
    { ...inputs("/script tokens=2 tool=get_weather"), ...calls, stream: true },
  ],
  ["a response that was cut", responses, { ...inputs("/script tokens=9"), max_output_tokens: 3 }],
  [
    "a stream of a response that was cut",
    responses,
    { ...inputs("/script tokens=9"), max_output_tokens: 3, stream: true, store: true },
  ],
  ["a message", messages, writes("Hello!")],
  ["a stream of a message", messages, { ...writes("/script tokens=2 think=2"), stream: true }],
  ["a message that calls", messages, { ...writes("/script tokens=0 tool=get_weather"), ...ownTool }],
  [
    "a streamed message with a text and a call",
    messages,
    { ...writes("/script tokens=2 tool=get_weather"), ...ownTool, stream: true },
  ],
  ["a message that was cut", messages, { ...writes("/script tokens=9"), max_tokens: 3, metadata: {} }],
  ["the tokens of a message", count, says("Hello!")],
  ["a continued text", completions, prompts("/script tokens=3")],
  ["two continued texts", completions, { model: "scripted", prompt: ["/script tokens=3", "b"], n: 2, echo: true }],
  ["a streamed continued text", completions, { ...prompts("/script tokens=3"), ...asStream }],
  ["a vector", embeddings, embeds],
  ["several vectors as base64", embeddings, { ...embeds, input: ["a", "b"], encoding_format: "base64" }],
  ["shorter vectors", embeddings, { ...embeds, dimensions: 8, user: "ann" }],
  ["a chat in lines", "/api/chat", says("/script tokens=2 think=2")],
  ["a chat that calls, in lines", "/api/chat", { ...says("/script tokens=1 tool=get_weather"), tools: [tool] }],
  ["a chat whole, for Ollama's clients", "/api/chat", { ...says("Hello!"), stream: false, keep_alive: 0 }],
  ["a load", "/api/chat", { model: "scripted" }],
  ["a prompt in lines", "/api/generate", prompts("/script tokens=2 think=2")],
  ["a prompt whole", "/api/generate", { ...prompts("/script tokens=9"), stream: false, raw: true }],
  ["vectors for Ollama's clients", "/api/embed", embeds],
  ["a vector for Ollama's clients", "/api/embeddings", { model: "scripted:embed", prompt: "a" }],
  ["the models with their tags", "/api/tags"],
  ["the models in memory", "/api/ps"],
  ["the properties of a model", "/api/show", { model: "scripted:latest" }],
  ["the version of Ollama's API", "/api/version"],
  ["the models", "/v1/models"],
  ["the models for Anthropic's clients", "/v1/models", undefined, anthropic],
  ["a model for Anthropic's clients", "/v1/models/scripted", undefined, { as: "/v1/models/{id}", ...anthropic }],
  ["a model", "/v1/models/scripted", undefined, { as: "/v1/models/{id}" }],
  ["a model of MLX", "/v1/models/scripted%3Amlx", undefined, { as: "/v1/models/{id}" }],
  ["the word of a gateway that it runs", "/healthz", undefined, { key: undefined }],
  ["the word of a gateway that it can serve", "/readyz", undefined, { key: undefined }],
];
test.each(answered)("%s comes as the document describes it", async (_what, path, sent, more) => {
  const { status, body, headers } = await asked(path, { body: sent, ...more });
  expect(status).toBe(200);
  if (headers.get("content-type")?.startsWith("text/event-stream")) expect(body).toMatch(endOf[path] ?? never);
});

test("stored responses, and turns that go on from them, come as the document describes them", async () => {
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
  for (const status of [200, 404]) expect((await asked(path, { method: "delete", key, as })).status).toBe(status);
  expect(codeOf(await asked(path, { key, as }))).toBe("response_not_found");
  expect(codeOf(await asked(responses, { body: going, key }))).toBe("response_not_found");
});

test("an answer tells how its key stands with its limits", async () => {
  const key = await issuedKey("--rpm", "100", "--tpm", "100000");
  const { headers } = await asked(chat, { body: says("Hello!"), key });
  expect(headers.get("x-ratelimit-remaining-requests")).toBe("99");
  const streamed = await asked(chat, { body: { ...says("Hello!"), stream: true }, key });
  const ownHeaders = [...headers.keys()].filter((name) => /^(?:x-|openai-)/.test(name));
  expect([...streamed.headers.keys()]).toEqual(expect.arrayContaining(ownHeaders));
  // One more is free again every 0.6 s.
  expect(streamed.headers.get("x-ratelimit-remaining-requests")).toMatch(/^9[89]$/);
  expect(streamed.headers.get("x-trunkline-machine")).toBe(headers.get("x-trunkline-machine"));
  await asked("/v1/models", { key });
  await asked("/v1/models/nothing", { key, as: "/v1/models/{id}" });
  await asked(embeddings, { key, body: {} });
});

const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const refused: [string, number, string | null, string, (object | string | undefined)?, Wish?][] = [
  ["an unload", 403, "insufficient_permissions", "/api/chat", { model: "scripted", keep_alive: 0 }],
  ["a template", 400, "unsupported_value", "/api/generate", { ...prompts("a"), template: "b" }],
  ["a model to show that nobody has", 404, "model_not_found", "/api/show", { model: "nobody-has-it" }],
  ["a list without a key", 401, "key_invalid", "/api/tags", undefined, { key: undefined }],
  ["a chat without a key", 401, "key_invalid", chat, says("Hello!"), { key: undefined }],
  ["a wrong key", 401, "key_invalid", "/v1/models", undefined, { key: "sk-wrong" }],
  ["a body that is no JSON", 400, null, chat, "{"],
  ["a body of another type", 415, "unsupported_media_type", chat, "a=1", { headers: { "content-type": "text/plain" } }],
  ["a body that is too large", 413, "request_too_large", chat, says("a".repeat(bodyBytesMax))],
  ["a chat without messages", 400, "missing_required_parameter", chat, { model: "scripted" }],
  ["a wrong type", 400, "invalid_type", chat, { ...says(""), stream: "yes" }],
  ["a wrong value", 400, "invalid_value", chat, { ...says(""), reasoning_effort: "huge" }],
  ["too small a number", 400, "integer_below_min_value", chat, { ...says(""), n: 0 }],
  ["too large a number", 400, "integer_above_max_value", chat, { ...says(""), n: 129 }],
  ["too little heat", 400, "decimal_below_min_value", chat, { ...says(""), temperature: -1 }],
  ["too much heat", 400, "decimal_above_max_value", completions, { ...prompts("a"), temperature: 3 }],
  ["an item that is none", 400, "invalid_value", responses, { model: "scripted", input: [{ type: "a" }] }],
  ["a turn after none", 400, "unsupported_parameter", responses, { ...inputs("a"), previous_response_id: "r" }],
  ["a message without a key", 401, "key_invalid", messages, writes("Hello!"), { key: undefined }],
  [
    "a block that is none",
    400,
    "invalid_value",
    messages,
    { ...writes(""), messages: [{ role: "user", content: [{ type: "a" }] }] },
  ],
  ["a message of no model", 404, "model_not_found", messages, { ...writes(""), model: "nobody-has-it" }],
  ["a count without messages", 400, "missing_required_parameter", count, { model: "scripted" }],
  [
    "Anthropic's look at no model",
    404,
    "model_not_found",
    "/v1/models/nobody",
    undefined,
    { as: "/v1/models/{id}", ...anthropic },
  ],
  ["an empty list", 400, "empty_array", chat, { model: "scripted", messages: [] }],
  ["too long a list", 400, "array_above_max_length", chat, { ...says(""), stop: "abcdefghijklmnopq".split("") }],
  ["too long a name", 400, "string_too_long", embeddings, { ...embeds, model: "a".repeat(300) }],
  ["a field that was replaced", 400, "unsupported_parameter", chat, { ...says(""), functions: [tool.function] }],
  ["a wish that the runtime cannot fulfil", 400, "unsupported_parameter", chat, { ...says(""), logprobs: true }],
  [
    "an answer of a tool to nothing",
    400,
    null,
    chat,
    { model: "scripted", messages: [{ role: "tool", content: "a", tool_call_id: "b" }] },
  ],
  [
    "a tool where none can be",
    400,
    "model_does_not_support_tools",
    chat,
    { ...says(""), model: "scripted:plain", tools: [tool] },
  ],
  [
    "an image where none is seen",
    400,
    "unsupported_value",
    chat,
    { model: "scripted", messages: [{ role: "user", content: [image] }] },
  ],
  ["a chat with a model of vectors", 400, "unsupported_value", chat, { ...says(""), model: "scripted:embed" }],
  ["a model that nobody has", 404, "model_not_found", chat, { ...says(""), model: "nobody-has-it" }],
  ["a look at no model", 404, "model_not_found", "/v1/models/nobody", undefined, { as: "/v1/models/{id}" }],
  ["a chat that its runtime fails in", 502, "upstream_error", chat, says("/script tokens=2 fail_at=0")],
  ["an odd URL", 400, "bad_request", "/v1/models/%00", undefined, { as: "/v1/models/{id}" }],
  ["a URL that is too long", 414, "uri_too_long", `/v1/models?${"a".repeat(9_000)}`, undefined, { as: "/v1/models" }],
  [
    "a head that is too large",
    431,
    "headers_too_large",
    "/healthz",
    undefined,
    { headers: { "x-a": "a".repeat(17_000) } },
  ],
];
test.each(refused)("%s is refused as the document describes it", async (_what, status, code, path, body, more) => {
  const answer = await asked(path, { body, ...more });
  expect([answer.status, codeOf(answer)]).toEqual([status, code]);
});

test("a request too many of a key is refused as the document describes it", async () => {
  const hurried = await issuedKey("--rpm", "1");
  await asked(chat, { body: says("Hello!"), key: hurried });
  const soon = await asked(chat, { body: says("Hello!"), key: hurried });
  expect([soon.status, codeOf(soon)]).toEqual([429, "rate_limit_exceeded"]);
  expect(Number(soon.headers.get("retry-after"))).toBeGreaterThan(0);
});

test.each([
  [chat, says, /"code":"upstream_error"/, "[DONE]"],
  [responses, inputs, /event: error\ndata: .*"code":"upstream_error".*\n\n$/, "response.completed"],
  [messages, writes, /event: error\ndata: .*"code":"upstream_error".*\n\n$/, "message_stop"],
])("a stream of %s that breaks ends in an error as the document describes it", async (path, of, error, end) => {
  const { status, body } = await asked(path, { body: { ...of("/script tokens=4 fail_at=2"), stream: true } });
  expect(status).toBe(200);
  expect(body).toMatch(error);
  expect(body).not.toContain(end);
});

test("an unknown operation is refused like any other", async () => {
  for (const [path, method] of [
    ["/nothing", "GET"],
    ["/v1/models", "DELETE"],
  ] as const) {
    const response = await fetch(root + path, { method });
    expect(api.misfits({ $ref: "#/components/schemas/Error" }, await response.json())).toEqual([]);
  }
});

const examples = Object.entries(document.paths).flatMap(([path, { post }]) =>
  Object.entries(post?.requestBody?.content["application/json"]?.examples ?? {}).map(
    ([name, { value }]): [string, string, object] => [name, path, Object(value)],
  ),
);

test("the document has examples for every request", () =>
  expect(new Set(examples.map(([, path]) => path)).size).toBe(20));

test.each(examples)("the example %s at %s is taken", async (name, path, body) => {
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
