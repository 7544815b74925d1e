import { APIConnectionTimeoutError, APIUserAbortError, type OpenAI } from "openai";
import { LengthFinishReasonError } from "openai/core/error";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { until } from "../harness/until.ts";
import { callTwice, cities, sayHello, sayLikely } from "./staged-answers.ts";
import { stagedOpenAi } from "./staged-openai.ts";
import { thrownBy } from "./thrown-by.ts";

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const weather = z.object({ city: z.string(), degrees: z.number() });
const oslo = { city: "Oslo", degrees: 7 };
const degrees: Readonly<Record<string, string>> = { Oslo: "7 degrees", Rome: "21 degrees" };
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const description = "The weather of a city";
const getWeather = { type: "function" as const, function: { name: "get_weather", description, parameters } };

const on = stagedOpenAi();

describe("a request of the official SDK", () => {
  beforeEach(() =>
    on.stage.answers((chat) => (chat.request.body["logprobs"] === true ? sayLikely(chat) : sayHello(chat))),
  );

  const hello = [{ role: "user" as const, content: "Hello" }];
  const chat = (fields: Partial<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming>) =>
    on.client.chat.completions.create({ model: on.stage.model, messages: hello, ...fields });

  test("a request of the official SDK passes on every way to say how the answer is drawn, under its own name", async () => {
    const drawn = {
      temperature: 0.4,
      top_p: 0.9,
      frequency_penalty: 0.5,
      presence_penalty: -0.5,
      seed: 7,
      stop: ["\n", "END"],
      logit_bias: { 50256: -100 },
      logprobs: true,
      top_logprobs: 2,
      reasoning_effort: "low" as const,
    };
    await chat(drawn);
    expect(on.stage.asked()).toMatchObject(drawn);
    await chat({ stop: "END", max_completion_tokens: 9 });
    expect(on.stage.asked()).toMatchObject({ stop: ["END"], max_tokens: 9 });
    await chat({ max_tokens: 8 });
    expect(on.stage.asked()).toMatchObject({ max_tokens: 8 });
    expect(on.watched.ignored).toEqual([]);
  });

  test("a request of the official SDK passes on nothing that the client did not say, but what the gateway itself must know", async () => {
    await chat({});
    const fields = ["cache_salt", "messages", "model", "stream", "stream_options"];
    expect(Object.keys(on.stage.asked()).toSorted()).toEqual(fields);
  });

  test("a request of the official SDK passes on the words of each role, a developer's as the system's", async () => {
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
      { role: "developer", content: "Be brief." },
      { role: "system", content: [{ type: "text", text: "Be kind." }] },
      { role: "user", content: "Hello", name: "ann" },
      { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      { role: "user", content: [{ type: "text", text: "Please" }] },
    ];
    await chat({ messages });
    const told = on.stage.asked()["messages"] as { role: string }[];
    expect(told.map(({ role }) => role)).toEqual(["system", "system", "user", "assistant", "user"]);
    for (const said of ["Be brief.", "Be kind.", "Hello", "No.", "Please"])
      expect(JSON.stringify(told)).toContain(said);
  });

  test("a request of the official SDK passes on images as they are, between their texts", async () => {
    const content: OpenAI.Chat.ChatCompletionContentPart[] = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: pixel, detail: "low" } },
      { type: "text", text: "And this?" },
      { type: "image_url", image_url: { url: pixel } },
    ];
    await chat({ messages: [{ role: "user", content }] });
    expect(on.stage.asked()["messages"]).toEqual([{ role: "user", content }]);
  });

  test("a request of the official SDK passes on an answer that is sent back as it came, with all that the SDK put into it", async () => {
    on.stage.answers((answer) => {
      answer.think("Hm.");
      sayHello(answer);
    });
    const { choices } = await chat({});
    const [{ message } = expect.fail("there was no choice")] = choices;
    await chat({ messages: [...hello, message, { role: "user", content: "Again" }] });
    expect(on.stage.asked()["messages"]).toMatchObject([
      ...hello,
      { role: "assistant", content: "Hello there." },
      { role: "user" },
    ]);
    const runner = on.client.chat.completions.stream({ model: on.stage.model, messages: hello });
    const streamed = await runner.finalMessage();
    await chat({ messages: [...hello, streamed, { role: "user", content: "Again" }] });
    expect(on.watched.statuses).toEqual([200, 200, 200, 200]);
    expect(on.watched.ignored).toEqual([]);
  });

  test("a model whose id has a slash and a colon is found by it", async () => {
    expect(await on.client.models.retrieve(on.stage.model)).toMatchObject({ id: on.stage.model, object: "model" });
    const ids = (await Array.fromAsync(on.client.models.list())).map(({ id }) => id);
    expect(ids).toEqual([on.stage.model]);
  });
});

describe("the official SDK's structured output", () => {
  beforeEach(() =>
    on.stage.answers((chat) => {
      for (const piece of ['{"city":', '"Oslo",', '"degrees":7}']) chat.say(piece);
      chat.done();
    }),
  );

  const ask = () => ({
    model: on.stage.model,
    messages: [{ role: "user" as const, content: "How cold is Oslo?" }],
    response_format: zodResponseFormat(weather, "weather"),
  });

  test("the official SDK's structured output is parsed by its helper, and the runtime is given the schema as it is", async () => {
    const { choices } = await on.client.chat.completions.parse(ask());
    expect(choices[0]?.message.parsed).toEqual(oslo);
    expect(choices[0]?.message.refusal).toBeNull();
    expect(on.stage.asked()["response_format"]).toEqual(JSON.parse(JSON.stringify(ask().response_format)));
  });

  test("the official SDK's structured output is parsed by its helper out of a stream", async () => {
    const helper = on.client.chat.completions.stream(ask());
    const { choices } = await helper.finalChatCompletion();
    expect(choices[0]?.message.parsed).toEqual(oslo);
  });

  test("the official SDK's structured output that is cut off is told as such, and never parsed", async () => {
    on.stage.answers((chat) => {
      chat.say('{"city":');
      chat.done({ finishReason: "length" });
    });
    expect(await thrownBy(on.client.chat.completions.parse(ask()))).toBeInstanceOf(LengthFinishReasonError);
  });

  test("the official SDK's structured output of a tool's arguments is parsed by its helper, for a tool that was told to be strict", async () => {
    on.stage.answers((chat) => {
      const called = { name: "report", arguments: JSON.stringify(oslo) };
      chat.call({ index: 0, id: "call_1", type: "function", function: called });
      chat.done({ finishReason: "tool_calls" });
    });
    const report = zodFunction({ name: "report", parameters: weather });
    const { model, messages } = ask();
    const { choices } = await on.client.chat.completions.parse({ model, messages, tools: [report] });
    const [{ message } = expect.fail("there was no choice")] = choices;
    expect(message.tool_calls).toMatchObject([{ function: { name: "report", parsed_arguments: oslo } }]);
    expect(on.stage.asked()["tools"]).toMatchObject([{ function: { name: "report", strict: true } }]);

    const answered = { role: "tool" as const, tool_call_id: "call_1", content: "Thanks." };
    const sentBack = { model, messages: [...messages, message, answered], tools: [report] };
    const { response } = await on.client.chat.completions.create(sentBack).withResponse();
    expect(response.headers.get("x-trunkline-ignored")).toBe("messages[1].tool_calls[0].function.parsed_arguments");
  });

  test("the official SDK's structured output of any object is asked for without a schema", async () => {
    await on.client.chat.completions.create({ ...ask(), response_format: { type: "json_object" } });
    expect(on.stage.asked()["response_format"]).toEqual({ type: "json_object" });
    await on.client.chat.completions.create({ ...ask(), response_format: { type: "text" } });
    expect(on.stage.asked()).not.toHaveProperty("response_format");
  });
});

describe("the official SDK's tools, several at once,", () => {
  beforeEach(() => on.stage.answers(callTwice));

  const question: OpenAI.Chat.ChatCompletionMessageParam = { role: "user", content: "Oslo or Rome?" };
  const ask = () => ({ model: on.stage.model, messages: [question], tools: [getWeather] });
  const whole = [
    { id: "call_Oslo", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
    { id: "call_Rome", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } },
  ];

  test("the official SDK's tools, several at once, come whole, each with an id of its own", async () => {
    const { choices } = await on.client.chat.completions.create(ask());
    expect(choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null, tool_calls: whole } });
  });

  test("the official SDK's tools, several at once, come in pieces that the SDK puts together by their indexes, which stay the same", async () => {
    const stream = on.client.chat.completions.stream(ask());
    const pieces: OpenAI.Chat.ChatCompletionChunk.Choice.Delta.ToolCall[] = [];
    stream.on("chunk", ({ choices: [choice] }) => void pieces.push(...(choice?.delta.tool_calls ?? [])));
    const [choice] = (await stream.finalChatCompletion()).choices;
    expect(choice?.message.tool_calls).toMatchObject(whole);
    for (const index of [0, 1]) {
      const [first, ...later] = pieces.filter((piece) => piece.index === index);
      const opening = {
        index,
        id: whole[index]?.id,
        type: "function",
        function: { name: "get_weather", arguments: "" },
      };
      expect(first).toEqual(opening);
      expect(later.map((piece) => Object.keys(piece).toSorted())).toEqual(later.map(() => ["function", "index"]));
    }
    expect(new Set(pieces.map(({ index }) => index))).toEqual(new Set([0, 1]));
  });

  test.each([false, true])(
    "the official SDK's tools, several at once, are run by its runner to the end of the loop, with stream %s",
    async (stream) => {
      const asked: string[] = [];
      const tool = {
        ...getWeather,
        function: {
          ...getWeather.function,
          parse: (text: string): unknown => JSON.parse(text),
          function: (given: unknown) => {
            const { city } = given as { city: string };
            asked.push(city);
            return degrees[city] ?? "";
          },
        },
      };
      const told = { ...ask(), tools: [tool] };
      const { chat } = on.client;
      const runner = stream ? chat.completions.runTools({ ...told, stream }) : chat.completions.runTools(told);
      expect(await runner.finalContent()).toBe("Hello there.");
      expect(asked).toEqual(cities);
      expect(on.stage.asked()).toMatchObject({
        messages: [
          { role: "user" },
          { role: "assistant", tool_calls: whole },
          { role: "tool", tool_call_id: "call_Oslo", content: "7 degrees" },
          { role: "tool", tool_call_id: "call_Rome", content: "21 degrees" },
        ],
      });
    },
  );

  test.each([false, true])(
    "the official SDK's tools, several at once, are one when the client wants no more, with stream %s",
    async (stream) => {
      const alone = { ...ask(), parallel_tool_calls: false };
      const { completions } = on.client.chat;
      const { choices } = await (stream ? completions.stream(alone).finalChatCompletion() : completions.create(alone));
      expect(choices[0]?.message.tool_calls).toMatchObject(whole.slice(0, 1));
      expect(choices[0]?.finish_reason).toBe("tool_calls");
      expect(on.stage.asked()).toMatchObject({ parallel_tool_calls: false });
    },
  );

  test("the official SDK's tools, several at once, are chosen among as the client says, in every form that there is", async () => {
    on.stage.answers(sayHello);
    const named = { type: "function" as const, function: { name: "get_weather" } };
    for (const choice of ["none", "auto", "required", named] as const) {
      await on.client.chat.completions.create({ ...ask(), tool_choice: choice });
      expect(on.stage.asked()).toMatchObject({ tool_choice: choice });
    }
    const other = { type: "function" as const, function: { name: "get_time" } };
    await on.client.chat.completions.create({
      ...ask(),
      tools: [getWeather, other],
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required", tools: [named] } },
    });
    expect(on.stage.asked()).toMatchObject({ tool_choice: "required", tools: [getWeather] });
  });
});

describe("the official SDK, when it leaves before the end,", () => {
  beforeEach(() =>
    on.stage.answers((chat) => {
      chat.say("One ");
      chat.say("two ");
    }),
  );

  const ask = () => ({ model: on.stage.model, messages: [{ role: "user" as const, content: "Count" }] });
  /** The runtime was at work, and is not any more, though its answer was never complete. */
  async function expectStopped(): Promise<void> {
    await until(() => on.stage.vllm.atWork === 0, { what: "the runtime to stop" });
    expect(on.stage.vllm.chats.at(-1)).toMatchObject({ closedEarly: true });
  }

  test("the official SDK, when it leaves before the end, stops the runtime by breaking out of a stream's loop", async () => {
    const stream = await on.client.chat.completions.create({ ...ask(), stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.content === "two ") break;
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime by aborting a stream, whose loop then ends", async () => {
    const stream = await on.client.chat.completions.create({ ...ask(), stream: true });
    const said: string[] = [];
    for await (const { choices } of stream) {
      said.push(choices[0]?.delta.content ?? "");
      if (said.at(-1) === "two ") stream.controller.abort();
    }
    expect(said.join("")).toBe("One two ");
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime by aborting the helper of streams, which then throws", async () => {
    const helper = on.client.chat.completions.stream(ask());
    helper.on("content", (_piece, whole) => whole === "One two " && helper.abort());
    expect(await thrownBy(helper.finalChatCompletion())).toBeInstanceOf(APIUserAbortError);
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime by a signal, though nothing of a whole answer was sent yet", async () => {
    const leaving = new AbortController();
    const asking = thrownBy(on.client.chat.completions.create(ask(), { signal: leaving.signal }));
    await until(() => on.stage.vllm.atWork === 1, { what: "the runtime to work" });
    leaving.abort();
    expect(await asking).toBeInstanceOf(APIUserAbortError);
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime when its own time is over", async () => {
    const asking = on.client.chat.completions.create(ask(), { timeout: 200 });
    expect(await thrownBy(asking)).toBeInstanceOf(APIConnectionTimeoutError);
    await expectStopped();
  });
});
