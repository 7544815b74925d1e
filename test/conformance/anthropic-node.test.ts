import Anthropic, { APIError, AuthenticationError, NotFoundError, RateLimitError } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { limitedKey } from "./limited-key.ts";
import { callTwice, cities, failBefore, failInTheMiddle, sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";
import { WatchedFetch } from "./watched-fetch.ts";

type Message = Anthropic.MessageParam;

const getWeather: Anthropic.Tool = {
  name: "get_weather",
  description: "The weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const originOf = (up: UpProcess): string => new URL(up.endpoint.baseUrl).origin;

describe("Anthropic's SDK, with the demonstration,", () => {
  let up: UpProcess;
  let client: Anthropic;
  beforeAll(async () => {
    up = await startUp();
    client = new Anthropic({ baseURL: originOf(up), apiKey: up.endpoint.key });
  });
  afterAll(() => up[Symbol.asyncDispose]());
  const ask = (content: string) => ({
    model: "scripted",
    max_tokens: 64,
    messages: [{ role: "user" as const, content }],
  });

  test("answers in one call", async () => {
    const message = await client.messages.create({ ...ask("/script tokens=3 think=1 nonce=abc"), system: "Be kind." });
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: "scripted",
      content: [
        { type: "thinking", thinking: "think-0 ", signature: expect.stringMatching(/./) },
        { type: "text", text: "abc-0 abc-1 abc-2 " },
      ],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: expect.any(Number), output_tokens: 4, cache_read_input_tokens: 0 },
    });
    expect(message.id).toMatch(/^msg_\w+$/);
    expect(message._request_id).toMatch(/^req_/);
  });

  test("streams event by event, and the SDK makes the same message of them", async () => {
    const stream = client.messages.stream(ask("/script tokens=5 think=2 delay_ms=2 nonce=abc"));
    const deltas: string[] = [];
    stream.on("text", (delta) => void deltas.push(delta));
    const message = await stream.finalMessage();
    expect(deltas).toEqual([0, 1, 2, 3, 4].map((at) => `abc-${at} `));
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "think-0 think-1 " },
      { type: "text", text: deltas.join("") },
    ]);
    expect(message).toMatchObject({ stop_reason: "end_turn", usage: { output_tokens: 7 } });
    expect(message.usage.input_tokens).toBeGreaterThan(0);
  });

  test("is told that an answer was cut short, whole and streamed", async () => {
    const asked = { ...ask("/script tokens=50 nonce=abc"), max_tokens: 2 };
    expect(await client.messages.create(asked)).toMatchObject({ stop_reason: "max_tokens" });
    expect(await client.messages.stream(asked).finalMessage()).toMatchObject({ stop_reason: "max_tokens" });
  });

  test("is told which stop sequence ended an answer, whole and streamed", async () => {
    const asked = { ...ask("/script tokens=5 nonce=abc"), stop_sequences: ["END", "1 abc-2"] };
    const told = { stop_reason: "stop_sequence", stop_sequence: "1 abc-2", content: [{ text: "abc-0 abc-" }] };
    expect(await client.messages.create(asked)).toMatchObject(told);
    expect(await client.messages.stream(asked).finalMessage()).toMatchObject(told);
  });

  test.each([false, true])("runs a loop of tools to its end, with stream %s", async (isStreamed) => {
    const create = (messages: Message[]) => {
      const asked = { ...ask(""), messages, tools: [getWeather] };
      return isStreamed ? client.messages.stream(asked).finalMessage() : client.messages.create(asked);
    };
    const content = '/script tokens=3 think=1 tool=get_weather args={"city":"Oslo"} nonce=abc';
    const first = await create([{ role: "user", content }]);
    expect(first.stop_reason).toBe("tool_use");
    expect(first.content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    const call = first.content.find((block) => block.type === "tool_use");
    expect(call).toMatchObject({ name: "get_weather", input: { city: "Oslo" } });
    const result = { type: "tool_result" as const, tool_use_id: call?.id ?? "", content: "7 degrees" };
    const second = await create([
      { role: "user", content },
      { role: "assistant", content: first.content },
      { role: "user", content: [result] },
    ]);
    expect(second).toMatchObject({ stop_reason: "end_turn", content: [{}, { text: "abc-0 abc-1 abc-2 " }] });
  });

  test.each([
    [{ output_config: { effort: "high" as const }, thinking: { type: "adaptive" as const } }, "output_config.effort"],
    [{ output_config: { effort: "high" as const }, thinking: { type: "disabled" as const } }, null],
  ])("is answered by a model that does not think, whatever the effort: %j", async (wish, ignored) => {
    const asked = { ...ask("/script tokens=1"), model: "scripted:plain", ...wish };
    const { data, response } = await client.messages.create(asked).withResponse();
    expect(data.content).toMatchObject([{ text: "token-0 " }]);
    expect(response.headers.get("x-trunkline-ignored")).toBe(ignored);
    const { response: streamed } = await client.messages.create({ ...asked, stream: true }).withResponse();
    expect([await streamed.text(), streamed.headers.get("x-trunkline-ignored")]).toEqual([
      expect.stringContaining("message_stop"),
      ignored,
    ]);
  });

  test("lists the models, page by page if it wants, and finds one", async () => {
    const { data } = await client.models.list();
    expect(data.map(({ id }) => id)).toContain("scripted");
    const ids = (await Array.fromAsync(client.models.list({ limit: 1 }))).map(({ id }) => id);
    expect(ids).toEqual(data.map(({ id }) => id));
    expect(await client.models.retrieve("scripted")).toMatchObject({ type: "model", id: "scripted" });
    expect(await thrownBy(client.models.retrieve("nobody"))).toBeInstanceOf(NotFoundError);
  });

  test("counts tokens as the model counts them in an answer", async () => {
    const { max_tokens: _, ...asked } = ask("word ".repeat(400));
    const { data, response } = await client.messages.countTokens(asked).withResponse();
    const { usage } = await client.messages.create(ask("word ".repeat(400)));
    expect(data.input_tokens).toBe(usage.input_tokens);
    expect(response.headers.get("x-trunkline-estimate")).toBeNull();
  });

  test("takes its key as a Bearer token too, and says as what it failed", async () => {
    const bearer = new Anthropic({ baseURL: originOf(up), apiKey: null, authToken: up.endpoint.key });
    expect((await bearer.messages.create(ask("/script tokens=1"))).content).toHaveLength(1);
    const wrong = new Anthropic({ baseURL: originOf(up), apiKey: "nonsense" });
    const error = await thrownBy(wrong.messages.create(ask("Hello")));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({
      status: 401,
      requestID: expect.stringMatching(/^req_/),
      error: { type: "error", error: { type: "authentication_error", code: "key_invalid" } },
    });
  });

  test("aborts in the middle of a stream, and the one slot of the machine is free again", async () => {
    await using narrow = await startUp({ TRUNKLINE_SLOTS: "1" });
    const { messages } = new Anthropic({ baseURL: originOf(narrow), apiKey: narrow.endpoint.key });
    const stream = await messages.create({
      ...ask("/script tokens=100000 delay_ms=10"),
      max_tokens: 100_000,
      stream: true,
    });
    for await (const event of stream) if (event.type === "content_block_delta") stream.controller.abort();
    expect(await messages.create(ask("/script tokens=1"))).toMatchObject({ content: [{ text: "token-0 " }] });
  });

  test("sends a prompt twice only once a minute to a model that lacks its effort", async () => {
    const asked = { ...ask("/script tokens=1"), model: "scripted:plain", output_config: { effort: "max" as const } };
    const ids: unknown[] = [];
    for (let times = 0; times < 3; times += 1) {
      const { response } = await client.messages.create(asked).withResponse();
      ids.push(response.headers.get("request-id"));
      expect(response.headers.get("x-trunkline-ignored")).toBe("output_config.effort");
    }
    // The line of an answer is written after it.
    const ended = await until(
      async () => {
        const lines = (await up.logLines()).filter(({ msg, request }) => msg === "request" && ids.includes(request));
        return lines.length === 3 && lines;
      },
      { what: "the lines of the three requests" },
    );
    expect(ended.map(({ earlierJobs }) => earlierJobs)).toEqual([[expect.any(String)], undefined, undefined]);
  });

  test.each(["/", "/api/hello"])("is told without a key that a server is there, at %s", async (path) => {
    const { status } = await fetch(originOf(up) + path, { method: "HEAD" });
    expect(status).toBe(200);
  });
});

describe("Anthropic's SDK", () => {
  let staged: StagedVllm;
  let client: Anthropic;
  let watched: WatchedFetch;
  beforeAll(async () => void (staged = await startStagedVllm()));
  beforeEach(() => {
    watched = new WatchedFetch();
    client = newClient();
    staged.answers(sayHello);
  });
  afterAll(() => staged[Symbol.asyncDispose]());
  const newClient = (options: object = {}) =>
    new Anthropic({
      baseURL: originOf(staged.up),
      apiKey: staged.up.endpoint.key,
      maxRetries: 0,
      fetch: watched.fetch,
      ...options,
    });
  const ask = (fields: object = {}) => ({
    model: staged.model,
    max_tokens: 64,
    messages: [{ role: "user" as const, content: "How cold is Oslo?" }],
    ...fields,
  });

  test("asks the runtime for nothing that the client did not say, but the salt of its key", async () => {
    await client.messages.create(ask());
    const fields = ["cache_salt", "max_tokens", "messages", "model", "stream", "stream_options"];
    expect(Object.keys(staged.asked()).toSorted()).toEqual(fields);
    expect(watched.ignored).toEqual([]);
  });

  test("runs two tools at once by its own runner, to the end", async () => {
    staged.answers(callTwice);
    const asked: unknown[] = [];
    const run = ({ city }: { city?: string }): string => {
      asked.push(city);
      return "7 degrees";
    };
    const tool = { type: "custom" as const, ...getWeather, run, parse: (input: unknown) => input as { city?: string } };
    const message = await client.beta.messages.toolRunner({ ...ask(), tools: [tool] });
    expect(message.content).toMatchObject([{ type: "text", text: "Hello there." }]);
    expect(asked).toEqual(cities);
    // The SDK asks for a thread that its server keeps, and is told that none is kept here.
    expect(watched.statuses).toEqual([400, 200, 200]);
    const { messages } = staged.asked() as { messages: { role: string; tool_call_id?: string }[] };
    expect(messages.slice(-2)).toMatchObject(cities.map((city) => ({ role: "tool", tool_call_id: `call_${city}` })));
  });

  test("shows an image, and gets an answer that fits a schema", async () => {
    const data = "iVBORw0KGgo=";
    const image = {
      type: "image" as const,
      source: { type: "base64" as const, media_type: "image/png" as const, data },
    };
    const schema = { type: "object" as const, properties: { city: { type: "string" } } };
    const output_config = { effort: "low" as const, format: { type: "json_schema" as const, schema } };
    await client.messages.create(ask({ messages: [{ role: "user", content: [image] }], output_config }));
    expect(staged.asked()).toMatchObject({
      messages: [{ content: [{ image_url: { url: `data:image/png;base64,${data}` } }] }],
      response_format: { type: "json_schema", json_schema: { schema } },
      reasoning_effort: "low",
    });
  });

  test("hears which betas and fields mean nothing here", async () => {
    const betas = ["context-management-2025-06-27", "interleaved-thinking-2025-05-14"];
    await client.beta.messages.create({
      ...ask(),
      betas,
      metadata: { user_id: "me" },
      context_management: { edits: [] },
    });
    expect(watched.sent.map(({ path }) => path)).toEqual(["/v1/messages"]);
    expect(watched.ignored).toEqual(["metadata,context_management,anthropic-beta"]);
  });

  test("throws what broke a stream in its middle, and no message", async () => {
    staged.answers(failInTheMiddle);
    const stream = client.messages.stream(ask());
    const error = await thrownBy(stream.finalMessage());
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ error: { type: "error", error: { type: "api_error", code: "upstream_error" } } });
    const events = watched.sent.at(-1)?.answered?.headers.get("content-type");
    expect(events).toContain("text/event-stream");
  });

  test("retries by itself what may go better the next time", async () => {
    let asked = 0;
    staged.answers((chat) => ((asked += 1) === 1 ? failBefore(chat) : sayHello(chat)));
    const message = await newClient({ maxRetries: 2 }).messages.create(ask());
    expect(message.content).toMatchObject([{ text: "Hello there." }]);
    expect(watched.statuses).toEqual([502, 200]);
  });

  test("is told of a limit as its class of error says", async () => {
    const key = await limitedKey(staged.up, "--rpm", "1");
    const limited = newClient({ apiKey: key });
    await limited.messages.create(ask());
    const error = await thrownBy(limited.messages.create(ask()));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ error: { error: { type: "rate_limit_error", code: "rate_limit_exceeded" } } });
    expect(watched.sent.at(-1)?.answered?.headers.get("retry-after")).toMatch(/^\d+$/);
  });

  test("is told of the field that it sent when a request is wrong", async () => {
    const error = await thrownBy(
      client.messages.create(ask({ messages: [{ role: "user", content: [{ type: "video" }] }] })),
    );
    expect(error).toMatchObject({
      status: 400,
      error: { error: { type: "invalid_request_error", param: "messages[0].content[0].type" } },
    });
  });

  test("stops the runtime when it leaves", async () => {
    staged.answers((chat) => chat.say("Hello "));
    const stream = await client.messages.create({ ...ask(), stream: true });
    for await (const event of stream) if (event.type === "content_block_delta") break;
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop" });
  });
});
