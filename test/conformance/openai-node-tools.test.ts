import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";

let up: UpProcess;
let client: OpenAI;
beforeAll(async () => {
  up = await startUp();
  client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key });
});
afterAll(() => up[Symbol.asyncDispose]());

const getWeather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const model = "scripted";
const content = '/script tokens=3 tool=get_weather args={"city":"Oslo"} nonce=abc';
const question: OpenAI.Chat.ChatCompletionMessageParam = { role: "user", content };

describe("the official SDK's loop of tools", () => {
  test("by hand: the call comes back whole, its answer ends the loop", async () => {
    const first = await client.chat.completions.create({ model, messages: [question], tools: [getWeather] });
    const [choice] = first.choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    const message = choice?.message;
    expect(message?.content).toBe("abc-0 abc-1 abc-2 ");
    const [call] = message?.tool_calls ?? [];
    expect(call).toMatchObject({ type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } });
    expect(call?.id).toMatch(/^call_\w+$/);
    if (message === undefined || call === undefined) throw new Error("there was no call");

    const answered = { role: "tool" as const, tool_call_id: call.id, content: "7 degrees" };
    const messages = [question, message, answered];
    const last = await client.chat.completions.create({ model, messages, tools: [getWeather], tool_choice: "auto" });
    expect(last.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "abc-0 abc-1 abc-2 " } });
    expect(last.choices[0]?.message.tool_calls).toBeUndefined();
  });

  test.each([false, true])("of a tool with dots in its name, with stream %s, gives that name back", async (stream) => {
    const dotted = { ...getWeather, function: { ...getWeather.function, name: "weather.get" } };
    const messages = [{ role: "user" as const, content: "/script tokens=1 tool=weather_get" }];
    const { choices } = stream
      ? await client.chat.completions.stream({ model, messages, tools: [dotted] }).finalChatCompletion()
      : await client.chat.completions.create({ model, messages, tools: [dotted] });
    const [call] = choices[0]?.message.tool_calls ?? [];
    expect(call).toMatchObject({ function: { name: "weather.get" } });
  });

  test.each([false, true])(
    "by its runner, with stream %s: the function runs once, and the loop ends",
    async (stream) => {
      const asked: unknown[] = [];
      const weather = {
        ...getWeather,
        function: {
          ...getWeather.function,
          parse: (text: string): unknown => JSON.parse(text),
          function: (given: unknown) => {
            asked.push(given);
            return "7 degrees";
          },
        },
      };
      const ask = { model, messages: [question], tools: [weather] };
      const runner = stream
        ? client.chat.completions.runTools({ ...ask, stream: true })
        : client.chat.completions.runTools(ask);
      expect(await runner.finalContent()).toBe("abc-0 abc-1 abc-2 ");
      expect(asked).toEqual([{ city: "Oslo" }]);
      expect(runner.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    },
  );

  test("a stream's pieces of a call make the same call, with the id in the first of them", async () => {
    const stream = client.chat.completions.stream({ model, messages: [question], tools: [getWeather] });
    const pieces: OpenAI.Chat.ChatCompletionChunk.Choice.Delta.ToolCall[] = [];
    stream.on("chunk", ({ choices: [choice] }) => void pieces.push(...(choice?.delta.tool_calls ?? [])));
    const [choice] = (await stream.finalChatCompletion()).choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(choice?.message.tool_calls).toEqual([
      expect.objectContaining({ function: expect.objectContaining({ arguments: '{"city":"Oslo"}' }) }),
    ]);
    expect(pieces[0]).toMatchObject({ index: 0, id: expect.stringMatching(/^call_/), type: "function" });
    expect(pieces.slice(1).every(({ id }) => id === undefined)).toBe(true);
  });

  test("a custom tool takes and gives texts, whole and streamed, and in the next turn", async () => {
    const patch = '/script tokens=1 tool=apply_patch args={"input":"a\\nb"}';
    const asked: OpenAI.Chat.ChatCompletionMessageParam = { role: "user", content: patch };
    const tools = [{ type: "custom" as const, custom: { name: "apply_patch", description: "Changes files." } }];
    const ask = { model, messages: [asked], tools };
    const [choice] = (await client.chat.completions.create(ask)).choices;
    const [call] = choice?.message.tool_calls ?? [];
    if (choice === undefined || call?.type !== "custom") throw new Error("the model called no custom tool");
    expect([call.custom, choice.finish_reason]).toEqual([{ name: "apply_patch", input: "a\nb" }, "tool_calls"]);
    const inputs: unknown[] = [];
    for await (const { choices } of await client.chat.completions.create({ ...ask, stream: true }))
      for (const piece of choices[0]?.delta.tool_calls ?? []) inputs.push("custom" in piece && piece.custom);
    expect(inputs).toEqual([{ name: "apply_patch", input: "" }, { input: "a\nb" }]);
    const result = { role: "tool" as const, tool_call_id: call.id, content: "Done." };
    const again = await client.chat.completions.create({ ...ask, messages: [asked, choice.message, result] });
    expect(again.choices[0]?.finish_reason).toBe("stop");
  });

  test("a call that is demanded is made, and a tool that is forbidden is not", async () => {
    const messages = [{ role: "user" as const, content: "Hello" }];
    const named = { type: "function" as const, function: { name: "get_weather" } };
    for (const tool_choice of ["required" as const, named]) {
      const { choices } = await client.chat.completions.create({ model, messages, tools: [getWeather], tool_choice });
      expect(choices[0]?.message.tool_calls).toHaveLength(1);
      expect(choices[0]?.message.content).toBeNull();
    }
    const none = await client.chat.completions.create({ model, messages, tools: [getWeather], tool_choice: "none" });
    expect(none.choices[0]?.message.tool_calls).toBeUndefined();
  });
});
