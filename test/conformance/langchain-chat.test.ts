import { HumanMessage, SystemMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { until } from "../harness/until.ts";
import { callTwice, failBefore, failInTheMiddle, sayHello, sayLikely } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";
import { WatchedFetch } from "./watched-fetch.ts";

const weather = z.object({ city: z.string(), degrees: z.number() });
const oslo = { city: "Oslo", degrees: 7 };

describe("LangChain", () => {
  let staged: StagedVllm;
  let watched: WatchedFetch;
  beforeAll(async () => void (staged = await startStagedVllm({ TRUNKLINE_SLOTS: "1", TRUNKLINE_QUEUE_MAX: "0" })));
  beforeEach(() => {
    watched = new WatchedFetch();
    staged.answers(sayHello);
  });
  afterAll(() => staged[Symbol.asyncDispose]());

  const chat = (fields: ConstructorParameters<typeof ChatOpenAI>[0] = {}) => {
    const { baseUrl: baseURL, key: apiKey } = staged.up.endpoint;
    const configuration = { baseURL, fetch: watched.fetch };
    return new ChatOpenAI({ model: staged.model, apiKey, configuration, maxRetries: 0, ...fields });
  };
  const getWeather = tool(({ city }) => `7 degrees in ${city}`, {
    name: "get_weather",
    description: "The weather of a city",
    schema: z.object({ city: z.string() }),
  });

  test("LangChain sends nothing by itself that is refused or ignored, and its settings reach the runtime", async () => {
    const drawn = { temperature: 0.4, topP: 0.9, frequencyPenalty: 0.5, presencePenalty: -0.5, maxTokens: 9 };
    const model = chat({ ...drawn, modelKwargs: { reasoning_effort: "low" } });
    await model.invoke([new SystemMessage("Be brief."), new HumanMessage("Hello")], { stop: ["END"], seed: 7 });
    expect(staged.asked()).toMatchObject({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
      temperature: 0.4,
      top_p: 0.9,
      frequency_penalty: 0.5,
      presence_penalty: -0.5,
      max_tokens: 9,
      stop: ["END"],
      seed: 7,
      reasoning_effort: "low",
    });
    await Array.fromAsync(await chat().stream("Hello"));
    expect([watched.statuses, watched.ignored]).toEqual([[200, 200], []]);
  });

  test("LangChain gets an object that is parsed, by a schema and by a call of a function", async () => {
    staged.answers(sayOslo);
    const bySchema = chat().withStructuredOutput(weather, { name: "weather", method: "jsonSchema" });
    expect(await bySchema.invoke("How cold is Oslo?")).toEqual(oslo);
    expect(staged.asked()["response_format"]).toMatchObject({ json_schema: { name: "weather", strict: true } });
    const byCall = chat().withStructuredOutput(weather, { name: "weather", method: "functionCalling" });
    expect(await byCall.invoke("How cold is Oslo?")).toEqual(oslo);
    expect(staged.asked()).toMatchObject({ tool_choice: { function: { name: "weather" } } });
    const asJson = chat().withStructuredOutput(weather, { method: "jsonMode" });
    expect(await asJson.invoke("How cold is Oslo?")).toEqual(oslo);
    expect(staged.asked()["response_format"]).toEqual({ type: "json_object" });
    expect(watched.ignored).toEqual([]);
  });

  test("LangChain runs two calls of one answer, and comes to the end of its loop", async () => {
    staged.answers(callTwice);
    const model = chat().bindTools([getWeather]);
    const question = new HumanMessage("Oslo or Rome?");
    const calling = await model.invoke([question]);
    expect(calling.tool_calls?.map(({ id, args }) => [id, args])).toEqual([
      ["call_Oslo", { city: "Oslo" }],
      ["call_Rome", { city: "Rome" }],
    ]);
    const answers: ToolMessage[] = await Promise.all((calling.tool_calls ?? []).map((call) => getWeather.invoke(call)));
    expect((await model.invoke([question, calling, ...answers])).text).toBe("Hello there.");
    expect(staged.asked()["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", tool_calls: [{ id: "call_Oslo" }, { id: "call_Rome" }] },
      { role: "tool", tool_call_id: "call_Oslo", content: "7 degrees in Oslo" },
      { role: "tool", tool_call_id: "call_Rome", content: "7 degrees in Rome" },
    ]);
    // It tells the name of the tool once more, which the call that is answered has told.
    expect(watched.ignored).toEqual(["messages[2].name,messages[3].name"]);
  });

  test("LangChain chooses among its tools as it says, and gets one call when it wants no more", async () => {
    const named = { type: "function", function: { name: "get_weather" } };
    for (const [choice, told] of [
      ["none", "none"],
      ["auto", "auto"],
      ["any", "required"],
      ["get_weather", named],
    ] as const) {
      await chat().bindTools([getWeather], { tool_choice: choice }).invoke("Hello");
      expect(staged.asked()["tool_choice"]).toEqual(told);
    }
    staged.answers(callTwice);
    const alone = await chat().bindTools([getWeather], { parallel_tool_calls: false }).invoke("Oslo or Rome?");
    expect(alone.tool_calls).toHaveLength(1);
  });

  test("LangChain speaks the Responses API where it is told to, and comes to the end of its loop there too", async () => {
    staged.answers(callTwice);
    const model = chat({ useResponsesApi: true }).bindTools([getWeather]);
    const question = new HumanMessage("Oslo or Rome?");
    const calling = await model.invoke([question]);
    expect(calling.tool_calls?.map(({ args }) => args)).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
    const answers: ToolMessage[] = await Promise.all((calling.tool_calls ?? []).map((call) => getWeather.invoke(call)));
    const stream = await model.stream([question, calling, ...answers]);
    expect((await Array.fromAsync(stream)).map(({ text }) => text).join("")).toBe("Hello there.");
    expect(watched.sent.map(({ path }) => path)).toEqual(["/v1/responses", "/v1/responses"]);
    expect(watched.ignored).toEqual([]);
  });

  test("LangChain shows images to a model that sees", async () => {
    const url = "data:image/png;base64,iVBORw==";
    const content = [
      { type: "text" as const, text: "What is this?" },
      { type: "image_url" as const, image_url: { url } },
    ];
    await chat().invoke([new HumanMessage({ content })]);
    expect(staged.asked()["messages"]).toEqual([{ role: "user", content }]);
    expect(watched.ignored).toEqual([]);
  });

  test("LangChain hears how likely each token was", async () => {
    staged.answers((answer) => sayLikely(answer));
    const { response_metadata: told } = await chat({ logprobs: true }).invoke("Hello");
    expect(told["logprobs"]).toMatchObject({ content: [{ token: "Hello", logprob: -0.5 }] });
  });

  test("LangChain stops the runtime when it leaves", async () => {
    const talking = Promise.withResolvers<FakeOpenAiChat>();
    staged.answers((answer) => {
      answer.say("One ");
      talking.resolve(answer);
    });
    const breaking = (async () => {
      for await (const { text } of await chat().stream("Hello")) if (text === "One ") break;
    })();
    // LangChain looks whether anybody listens when it has something to say.
    const answer = await talking.promise;
    const left = (): boolean => {
      if (staged.vllm.atWork > 0) answer.say("two ");
      return staged.vllm.atWork === 0;
    };
    await until(left, { what: "the runtime to stop after a break" });
    await breaking;
    const leaving = new AbortController();
    const asking = thrownBy(chat().invoke("Hello", { signal: leaving.signal }));
    await until(() => staged.vllm.atWork === 1, { what: "the runtime to work" });
    leaving.abort();
    expect(await asking).toBeInstanceOf(Error);
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop after a signal" });
    expect(await thrownBy(chat({ timeout: 100 }).invoke("Hello"))).toMatchObject({ name: "TimeoutError" });
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop when time is over" });
    expect(staged.vllm.chats.slice(-3)).toMatchObject([1, 2, 3].map(() => ({ closedEarly: true })));
  });

  test("LangChain sees a request through that a busy machine refuses", async () => {
    const held = Promise.withResolvers<FakeOpenAiChat>();
    staged.answers(held.resolve);
    const running = chat().invoke("Hello");
    const answer = await held.promise;
    staged.answers(sayHello);
    const waiting = chat({ maxRetries: 1 }).invoke("Hello");
    await until(() => watched.statuses[1] === 503, { what: "the first try to be refused" });
    sayHello(answer);
    expect([(await running).text, (await waiting).text]).toEqual(["Hello there.", "Hello there."]);
    expect(watched.statuses).toEqual([200, 503, 200]);
  });

  test("LangChain throws what the contract says, before an answer and in the middle of it", async () => {
    const refused = { status: 400, code: "decimal_above_max_value", param: "temperature" };
    await expect(chat({ temperature: 3 }).invoke("Hello")).rejects.toMatchObject(refused);
    staged.answers(failBefore);
    const failed = { status: 502, code: "upstream_error", type: "server_error" };
    await expect(chat().invoke("Hello")).rejects.toMatchObject(failed);
    staged.answers(failInTheMiddle);
    const streaming = (async () => Array.fromAsync(await chat().stream("Hello")))();
    await expect(streaming).rejects.toMatchObject({ code: "upstream_error", type: "server_error" });
  });
});

/** As a call where it was given a tool, and else as text. */
function sayOslo(chat: FakeOpenAiChat): void {
  if (chat.request.body["tools"] === undefined) {
    chat.say(JSON.stringify(oslo));
    return chat.done();
  }
  const called = { name: "weather", arguments: JSON.stringify(oslo) };
  chat.call({ index: 0, id: "call_1", type: "function", function: called });
  chat.done({ finishReason: "tool_calls" });
}
