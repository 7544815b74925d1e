import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { callTwice, cities, sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";

const degrees: Readonly<Record<string, string>> = { Oslo: "7 degrees", Rome: "21 degrees" };
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const description = "The weather of a city";
const getWeather = { type: "function" as const, function: { name: "get_weather", description, parameters } };

describe("the official SDK's tools, several at once,", () => {
  let staged: StagedVllm;
  let client: OpenAI;
  beforeAll(async () => {
    staged = await startStagedVllm();
    client = new OpenAI({ baseURL: staged.up.endpoint.baseUrl, apiKey: staged.up.endpoint.key, maxRetries: 0 });
  });
  beforeEach(() => staged.answers(callTwice));
  afterAll(() => staged[Symbol.asyncDispose]());

  const question: OpenAI.Chat.ChatCompletionMessageParam = { role: "user", content: "Oslo or Rome?" };
  const ask = () => ({ model: staged.model, messages: [question], tools: [getWeather] });
  const whole = [
    { id: "call_Oslo", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
    { id: "call_Rome", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } },
  ];

  test("come whole, each with an id of its own", async () => {
    const { choices } = await client.chat.completions.create(ask());
    expect(choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null, tool_calls: whole } });
  });

  test("come in pieces that the SDK puts together by their indexes, which stay the same", async () => {
    const stream = client.chat.completions.stream(ask());
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

  test.each([false, true])("are run by its runner to the end of the loop, with stream %s", async (stream) => {
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
    const { chat } = client;
    const runner = stream ? chat.completions.runTools({ ...told, stream }) : chat.completions.runTools(told);
    expect(await runner.finalContent()).toBe("Hello there.");
    expect(asked).toEqual(cities);
    expect(staged.asked()).toMatchObject({
      messages: [
        { role: "user" },
        { role: "assistant", tool_calls: whole },
        { role: "tool", tool_call_id: "call_Oslo", content: "7 degrees" },
        { role: "tool", tool_call_id: "call_Rome", content: "21 degrees" },
      ],
    });
  });

  test.each([false, true])("are one when the client wants no more, with stream %s", async (stream) => {
    const alone = { ...ask(), parallel_tool_calls: false };
    const { completions } = client.chat;
    const { choices } = await (stream ? completions.stream(alone).finalChatCompletion() : completions.create(alone));
    expect(choices[0]?.message.tool_calls).toMatchObject(whole.slice(0, 1));
    expect(choices[0]?.finish_reason).toBe("tool_calls");
    expect(staged.asked()).toMatchObject({ parallel_tool_calls: false });
  });

  test("are chosen among as the client says, in every form that there is", async () => {
    staged.answers(sayHello);
    const named = { type: "function" as const, function: { name: "get_weather" } };
    for (const choice of ["none", "auto", "required", named] as const) {
      await client.chat.completions.create({ ...ask(), tool_choice: choice });
      expect(staged.asked()).toMatchObject({ tool_choice: choice });
    }
    const other = { type: "function" as const, function: { name: "get_time" } };
    await client.chat.completions.create({
      ...ask(),
      tools: [getWeather, other],
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required", tools: [named] } },
    });
    expect(staged.asked()).toMatchObject({ tool_choice: "required", tools: [getWeather] });
  });
});
