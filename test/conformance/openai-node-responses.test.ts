import OpenAI, { APIError, NotFoundError } from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { callTwice, cities, failBefore, failInTheMiddle, sayHello, sayLikely } from "./staged-answers.ts";
import { stagedOpenAi } from "./staged-openai.ts";
import { thrownBy } from "./thrown-by.ts";

type Item = OpenAI.Responses.ResponseInputItem;

const weather = z.object({ city: z.string(), degrees: z.number() });
const oslo = { city: "Oslo", degrees: 7 };
const getWeather = {
  type: "function" as const,
  name: "get_weather",
  description: "The weather of a city",
  strict: true,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

describe("the official SDK's Responses API, with the demonstration,", () => {
  let up: UpProcess;
  let client: OpenAI;
  beforeAll(async () => {
    up = await startUp();
    client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key });
  });
  afterAll(() => up[Symbol.asyncDispose]());
  const ask = (input: string) => ({ model: "scripted", input });

  test("the official SDK's Responses API answers in one call, with the text where the SDK puts it", async () => {
    const response = await client.responses.create({ ...ask("/script tokens=3 nonce=abc"), instructions: "Be kind." });
    expect(response).toMatchObject({ object: "response", status: "completed", model: "scripted", error: null });
    expect(response.output_text).toBe("abc-0 abc-1 abc-2 ");
    expect(response.id).toMatch(/^resp_\w+$/);
    expect(response._request_id).toMatch(/^req_/);
    expect(response.usage).toMatchObject({ input_tokens: expect.any(Number), output_tokens: 3 });
  });

  test("the official SDK's Responses API streams event by event, and the SDK makes the same response of them", async () => {
    const stream = client.responses.stream(ask("/script tokens=5 think=2 delay_ms=2 nonce=abc"));
    const deltas: string[] = [];
    stream.on("response.output_text.delta", ({ delta }) => void deltas.push(delta));
    const response = await stream.finalResponse();
    expect(deltas).toEqual([0, 1, 2, 3, 4].map((at) => `abc-${at} `));
    expect(response.output_text).toBe(deltas.join(""));
    expect(response.output).toMatchObject([
      { type: "reasoning", content: [{ text: "think-0 think-1 " }] },
      { type: "message", status: "completed" },
    ]);
    expect(response.usage?.output_tokens_details.reasoning_tokens).toBe(2);
  });

  test("the official SDK's Responses API is told that an answer was cut short, whole and streamed", async () => {
    const asked = { ...ask("/script tokens=50 nonce=abc"), max_output_tokens: 2 };
    const cut = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
    expect(await client.responses.create(asked)).toMatchObject({ ...cut, output_text: "abc-0 abc-1 " });
    const events = await Array.fromAsync(await client.responses.create({ ...asked, stream: true }));
    expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: cut });
  });

  test("the official SDK's Responses API runs a loop of functions to its end, with the items sent back as they came", async () => {
    const content = '/script tokens=3 think=1 tool=get_weather args={"city":"Oslo"} nonce=abc';
    const input: Item[] = [{ role: "user", content }];
    const first = await client.responses.create({ model: "scripted", input, tools: [getWeather] });
    expect(first.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"]);
    const call = first.output.find((item) => item.type === "function_call");
    expect(call).toMatchObject({ name: "get_weather", arguments: '{"city":"Oslo"}', status: "completed" });
    const output: Item = { type: "function_call_output", call_id: call?.call_id ?? "", output: "7 degrees" };
    const again = { model: "scripted", input: [...input, ...(first.output as Item[]), output], tools: [getWeather] };
    const { data, response } = await client.responses.create(again).withResponse();
    expect([data.output_text, data.status]).toEqual(["abc-0 abc-1 abc-2 ", "completed"]);
    expect(response.headers.get("x-trunkline-ignored")).toBeNull();
  });

  test("the official SDK's Responses API runs a loop of a custom tool, which takes and gives texts", async () => {
    const content = '/script tokens=1 tool=apply_patch args={"input":"a\\nb"}';
    const tools = [{ type: "custom" as const, name: "apply_patch", description: "Changes files." }];
    const input: Item[] = [{ role: "user", content }];
    const stream = client.responses.stream({ model: "scripted", input, tools });
    const deltas: string[] = [];
    stream.on("response.custom_tool_call_input.delta", ({ delta }) => deltas.push(delta));
    const first = await stream.finalResponse();
    const call = first.output.find((item) => item.type === "custom_tool_call");
    expect([call?.name, call?.input, deltas]).toEqual(["apply_patch", "a\nb", ["a\nb"]]);
    const output: Item = { type: "custom_tool_call_output", call_id: call?.call_id ?? "", output: "Done." };
    const again = { model: "scripted", input: [...input, ...(first.output as Item[]), output], tools };
    expect((await client.responses.create(again)).status).toBe("completed");
  });

  test.each([false, true])(
    "is told of the field that it sent, with stream %s, when the runtime cannot honour it",
    async (stream) => {
      const format = { type: "json_schema" as const, name: "any", schema: { type: "object" } };
      const error = await thrownBy(client.responses.create({ ...ask("Hello"), text: { format }, stream }));
      expect(error).toMatchObject({
        status: 400,
        param: "text.format",
        message: expect.stringContaining("'text.format'"),
      });
    },
  );

  test("the official SDK's Responses API is told plainly that nothing is kept", async () => {
    const going = client.responses.create({ ...ask("Hello"), previous_response_id: "resp_1" });
    expect(await thrownBy(going)).toMatchObject({ status: 400, param: "previous_response_id" });
    const kept = await thrownBy(client.responses.retrieve("resp_1"));
    expect(kept).toBeInstanceOf(NotFoundError);
    expect(String(kept)).toContain("This key has no such response");
  });

  test("the official SDK's Responses API aborts in the middle of a stream, and the one slot of the machine is free again", async () => {
    await using narrow = await startUp({ TRUNKLINE_SLOTS: "1" });
    const { responses } = new OpenAI({ baseURL: narrow.endpoint.baseUrl, apiKey: narrow.endpoint.key });
    const stream = await responses.create({ ...ask("/script tokens=100000 delay_ms=10"), stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") stream.controller.abort();
    expect((await responses.create(ask("/script tokens=1"))).output_text).toBe("token-0 ");
  });
});

describe("the official SDK's Responses API", () => {
  const on = stagedOpenAi();
  const ask = (fields: object = {}) => ({ model: on.stage.model, input: "How cold is Oslo?", ...fields });

  test("the official SDK's Responses API asks the runtime for nothing that the client did not say, but the salt of its key", async () => {
    await on.client.responses.create(ask());
    const fields = ["cache_salt", "messages", "model", "stream", "stream_options"];
    expect(Object.keys(on.stage.asked()).toSorted()).toEqual(fields);
    expect(on.watched.ignored).toEqual([]);
  });

  test("the official SDK's Responses API gets structured output that its helper parses, whole and streamed", async () => {
    on.stage.answers((chat) => {
      for (const piece of ['{"city":', '"Oslo",', '"degrees":7}']) chat.say(piece);
      chat.done();
    });
    const asked = ask({ text: { format: zodTextFormat(weather, "weather") } });
    expect((await on.client.responses.parse(asked)).output_parsed).toEqual(oslo);
    expect(on.stage.asked()["response_format"]).toMatchObject({
      type: "json_schema",
      json_schema: { name: "weather", strict: true },
    });
    expect((await on.client.responses.stream(asked).finalResponse()).output_parsed).toEqual(oslo);
  });

  test("the official SDK's Responses API gets the arguments of a function parsed, and calls that come at once, each with its own", async () => {
    on.stage.answers(callTwice);
    const tool = zodResponsesFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) });
    const expected = cities.map((city) => ({ call_id: `call_${city}`, parsed_arguments: { city } }));
    expect((await on.client.responses.parse(ask({ tools: [tool] }))).output).toMatchObject(expected);
    const streamed = await on.client.responses.stream(ask({ tools: [tool] })).finalResponse();
    expect(streamed.output).toMatchObject(expected);
    expect(on.stage.asked()["tools"]).toMatchObject([{ function: { name: "get_weather", strict: true } }]);
  });

  test("the official SDK's Responses API gives what functions gave to the runtime as it takes it, with what the model thought", async () => {
    on.stage.answers((chat) => {
      chat.think("Hm.");
      callTwice(chat);
    });
    const tools = [getWeather];
    const { output } = await on.client.responses.create(ask({ tools }));
    const gave = cities.map((city): Item => ({ type: "function_call_output", call_id: `call_${city}`, output: "7" }));
    const input: Item[] = [{ role: "user", content: "Oslo or Rome?" }, ...(output as Item[]), ...gave];
    expect((await on.client.responses.create({ model: on.stage.model, input, tools })).output_text).toBe(
      "Hello there.",
    );
    expect(on.stage.asked()["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", reasoning: "Hm.", tool_calls: [{ id: "call_Oslo" }, { id: "call_Rome" }] },
      { role: "tool", tool_call_id: "call_Oslo", content: "7" },
      { role: "tool", tool_call_id: "call_Rome", content: "7" },
    ]);
    expect(on.watched.ignored).toEqual([]);
  });

  test("the official SDK's Responses API hears how likely each token was, whole and streamed", async () => {
    on.stage.answers((chat) => sayLikely(chat));
    const asked = ask({ include: ["message.output_text.logprobs"], top_logprobs: 1 });
    const likely = [{ token: "Hello", logprob: -0.5, top_logprobs: [{ token: "Hi" }] }];
    const part = { type: "output_text", text: "Hello", logprobs: likely };
    expect((await on.client.responses.create(asked)).output).toMatchObject([{ content: [part] }]);
    expect((await on.client.responses.stream(asked).finalResponse()).output).toMatchObject([{ content: [part] }]);
    expect(on.stage.asked()).toMatchObject({ logprobs: true, top_logprobs: 1 });
  });

  test("the official SDK's Responses API throws what fails before the answer with its status, and retries it if it may", async () => {
    on.stage.answers(failBefore);
    const failed = { status: 502, code: "upstream_error", type: "server_error" };
    for (const stream of [false, true])
      expect(await thrownBy(on.client.responses.create({ ...ask(), stream }))).toMatchObject(failed);
    let times = 0;
    on.stage.answers((chat) => ((times += 1) === 1 ? failBefore(chat) : sayHello(chat)));
    const retrying = on.client.withOptions({ maxRetries: 2 });
    expect((await retrying.responses.create(ask())).output_text).toBe("Hello there.");
  });

  test("the official SDK's Responses API throws what fails in the middle of a stream, and never takes it for the end", async () => {
    on.stage.answers(failInTheMiddle);
    const heard: string[] = [];
    const listening = (async () => {
      for await (const event of await on.client.responses.create({ ...ask(), stream: true })) heard.push(event.type);
    })();
    const error = await thrownBy(listening);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: "upstream_error", type: "server_error", param: null });
    expect(heard.at(-1)).toBe("response.output_text.delta");
    expect(await thrownBy(on.client.responses.stream(ask()).finalResponse())).toMatchObject({ code: "upstream_error" });
  });

  test("the official SDK's Responses API stops the runtime when it leaves", async () => {
    on.stage.answers((chat) => chat.say("Hello "));
    const stream = await on.client.responses.create({ ...ask(), stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break;
    await until(() => on.stage.vllm.atWork === 0, { what: "the runtime to stop" });
    expect(on.stage.vllm.chats.at(-1)).toMatchObject({ closedEarly: true });
  });
});
