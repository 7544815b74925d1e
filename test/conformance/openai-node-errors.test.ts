import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { limitedKey } from "./limited-key.ts";
import { thrownBy } from "./thrown-by.ts";

/** One way to fail, and all that the SDK makes of it. */
interface Failure {
  readonly of: string;
  readonly as: { readonly name: string; readonly prototype: APIError };
  readonly status: number;
  readonly code: string | null;
  readonly type?: string;
  readonly param?: string;
  readonly ask: (client: OpenAI) => PromiseLike<unknown>;
}

const bodyBytesMax = 1_048_576;
const hello = [{ role: "user" as const, content: "Hello" }];
const script = (line: string) => [{ role: "user" as const, content: `/script ${line}` }];
const requestID = expect.stringMatching(/^req_\w{10,}$/);

/** A chat that is well but for these fields, which may be what no type allows. */
const chat = (fields: object) => (client: OpenAI) =>
  client.chat.completions.create({ model: "scripted", messages: hello, ...fields });

const refused = { as: BadRequestError, status: 400 };
const look = { type: "function", function: { name: "look" } };
const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const answering = { role: "tool", tool_call_id: "call_1", content: "7 degrees" };

const failures: readonly Failure[] = [
  {
    of: "no messages",
    ...refused,
    code: "missing_required_parameter",
    param: "messages",
    ask: chat({ messages: undefined }),
  },
  { of: "an empty list of messages", ...refused, code: "empty_array", param: "messages", ask: chat({ messages: [] }) },
  {
    of: "a content that is a number",
    ...refused,
    code: "invalid_type",
    param: "messages[0].content",
    ask: chat({ messages: [{ role: "user", content: 5 }] }),
  },
  {
    of: "a role that nobody has",
    ...refused,
    code: "invalid_value",
    param: "messages[0].role",
    ask: chat({ messages: [{ role: "robot", content: "Hello" }] }),
  },
  {
    of: "too high a temperature",
    ...refused,
    code: "decimal_above_max_value",
    param: "temperature",
    ask: chat({ temperature: 3 }),
  },
  {
    of: "too low a temperature",
    ...refused,
    code: "decimal_below_min_value",
    param: "temperature",
    ask: chat({ temperature: -1 }),
  },
  {
    of: "too many likely tokens",
    ...refused,
    code: "integer_above_max_value",
    param: "top_logprobs",
    ask: chat({ logprobs: true, top_logprobs: 21 }),
  },
  { of: "no answer at all", ...refused, code: "integer_below_min_value", param: "n", ask: chat({ n: 0 }) },
  {
    of: "too many stops",
    ...refused,
    code: "array_above_max_length",
    param: "stop",
    ask: chat({ stop: "abcdefghijklmnopq".split("") }),
  },
  {
    of: "too long a name of a schema",
    ...refused,
    code: "string_too_long",
    param: "response_format.json_schema.name",
    ask: chat({ response_format: { type: "json_schema", json_schema: { name: "a".repeat(65), schema: {} } } }),
  },
  {
    of: "a tool that answers what nobody asked",
    ...refused,
    code: null,
    param: "messages[1].role",
    ask: chat({ messages: [...hello, answering] }),
  },
  {
    of: "tools for a model without",
    ...refused,
    code: "model_does_not_support_tools",
    param: "tools",
    ask: chat({ model: "scripted:plain", tools: [look] }),
  },
  {
    of: "an image for a model that cannot see",
    ...refused,
    code: "unsupported_value",
    param: "messages[0].content[0]",
    ask: chat({ messages: [{ role: "user", content: [image] }] }),
  },
  {
    of: "a form that the runtime cannot keep to",
    ...refused,
    code: "unsupported_parameter",
    param: "response_format",
    ask: chat({ response_format: { type: "json_object" } }),
  },
  {
    of: "a chat with a model that only embeds",
    ...refused,
    code: "unsupported_value",
    param: "model",
    ask: chat({ model: "scripted:embed" }),
  },
  {
    of: "embeddings of what are no token ids",
    ...refused,
    code: "invalid_value",
    param: "input[0]",
    ask: (client) => client.embeddings.create({ model: "scripted:embed", input: [1_000_000] }),
  },
  {
    of: "a key that is none",
    as: AuthenticationError,
    status: 401,
    code: "key_invalid",
    ask: (client) => client.withOptions({ apiKey: "sk-nonsense" }).models.list(),
  },
  {
    of: "a model that is not there, by a chat",
    as: NotFoundError,
    status: 404,
    code: "model_not_found",
    param: "model",
    ask: chat({ model: "absent" }),
  },
  {
    of: "a model that is not there, by its id",
    as: NotFoundError,
    status: 404,
    code: "model_not_found",
    param: "model",
    ask: (client) => client.models.retrieve("a/b:c"),
  },
  {
    of: "an endpoint that is not there",
    as: NotFoundError,
    status: 404,
    code: "unknown_url",
    ask: (client) => client.fineTuning.jobs.list(),
  },
  {
    of: "a method that an endpoint does not take",
    as: APIError,
    status: 405,
    code: "method_not_allowed",
    ask: (client) => client.models.delete("scripted"),
  },
  {
    of: "a request that is too large",
    as: APIError,
    status: 413,
    code: "request_too_large",
    ask: chat({ messages: [{ role: "user", content: "a".repeat(bodyBytesMax) }] }),
  },
  {
    of: "a runtime that fails",
    as: InternalServerError,
    status: 502,
    code: "upstream_error",
    type: "server_error",
    ask: chat({ messages: script("fail_at=0") }),
  },
  {
    of: "a runtime that fails before a stream has begun",
    as: InternalServerError,
    status: 502,
    code: "upstream_error",
    type: "server_error",
    ask: chat({ messages: script("fail_at=0"), stream: true }),
  },
];

describe("the official SDK throws", () => {
  let up: UpProcess;
  let client: OpenAI;
  beforeAll(async () => {
    up = await startUp({ TRUNKLINE_BODY_BYTES_MAX: String(bodyBytesMax) });
    client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key, maxRetries: 0 });
  });
  afterAll(() => up[Symbol.asyncDispose]());

  /** A client with a key that was issued with these flags. */
  async function withKey(...flags: string[]): Promise<OpenAI> {
    return client.withOptions({ apiKey: await limitedKey(up, ...flags) });
  }

  test.each(failures)(
    "$as.name for $of",
    async ({ as, status, code, type = "invalid_request_error", param = null, ask }) => {
      const error = await thrownBy(ask(client));
      expect(error).toBeInstanceOf(APIError);
      expect(Object.getPrototypeOf(error)).toBe(as.prototype);
      expect(error).toMatchObject({ status, code, type, param, requestID });
    },
  );

  test("AuthenticationError for a key whose time has elapsed", async () => {
    const expiring = await withKey("--ttl", "1s");
    const expired = await until(
      async () => {
        const error = await thrownBy(expiring.chat.completions.create({ model: "scripted", messages: hello }));
        return error instanceof APIError && error;
      },
      { what: "the key's time to elapse", intervalMs: 50 },
    );
    expect(expired).toBeInstanceOf(AuthenticationError);
    expect(expired).toMatchObject({ status: 401, code: "key_expired", param: null, requestID });
  });

  test("RateLimitError for each limit of a key, and is told which of them are worth another try", async () => {
    const say = (limited: OpenAI, line = "tokens=1") =>
      limited.chat.completions.create({ model: "scripted", messages: script(line), max_tokens: 8 });
    const [requests, tokens, budget, one] = await Promise.all([
      withKey("--rpm", "1"),
      withKey("--tpm", "10"),
      withKey("--budget", "1/day"),
      withKey("--concurrency", "1"),
    ]);
    for (const used of [requests, tokens, budget]) await say(used);
    const told = await Promise.all([requests, tokens, budget].map((used) => thrownBy(say(used))));
    for (const error of told) expect(error).toBeInstanceOf(RateLimitError);
    expect(told).toMatchObject([
      { status: 429, code: "rate_limit_exceeded", type: "requests", param: null, requestID },
      { status: 429, code: "rate_limit_exceeded", type: "tokens", param: null, requestID },
      { status: 429, code: "insufficient_quota", type: "insufficient_quota", param: null, requestID },
    ]);
    expect(told.map(retrying)).toEqual([
      { after: expect.stringMatching(/^\d+$/), should: null },
      { after: expect.stringMatching(/^\d+$/), should: null },
      { after: null, should: "false" },
    ]);

    const running = await one.chat.completions.create({
      model: "scripted",
      messages: script("stall_at=1"),
      stream: true,
    });
    const crowded = await thrownBy(say(one));
    expect(crowded).toBeInstanceOf(RateLimitError);
    expect(crowded).toMatchObject({ status: 429, code: "concurrency_limit_exceeded", type: "requests", requestID });
    expect(retrying(crowded)).toEqual({ after: "1", should: null });
    running.controller.abort();
  });

  test("APIError out of a stream that fails, which never ends as a success", async () => {
    const ask = { model: "scripted", messages: script("tokens=9 delay_ms=5 fail_at=3 nonce=abc") };
    const said: string[] = [];
    const reading = async () => {
      const stream = await client.chat.completions.create({ ...ask, stream: true });
      for await (const { choices } of stream) said.push(choices[0]?.delta.content ?? "");
    };
    const error = await thrownBy(reading());
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: "upstream_error", type: "server_error", param: null, requestID });
    expect(said.join("")).toBe("abc-0 abc-1 abc-2 ");
    expect(await thrownBy(client.chat.completions.stream(ask).finalChatCompletion())).toBeInstanceOf(APIError);
  });
});

function retrying(error: unknown): { after: string | null; should: string | null } {
  const headers = error instanceof APIError ? (error.headers as Headers | undefined) : undefined;
  return { after: headers?.get("retry-after") ?? null, should: headers?.get("x-should-retry") ?? null };
}
