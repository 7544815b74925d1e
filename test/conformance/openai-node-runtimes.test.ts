import OpenAI, { BadRequestError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { frontedRuntimes, type Fronted } from "./fronted-runtimes.ts";
import { questions, said } from "./knowing-model.ts";

describe.each(frontedRuntimes)("the official SDK, through $name,", ({ start, embeds, knowsLogprobs }) => {
  let fronted: Fronted;
  let client: OpenAI;
  beforeAll(async () => {
    fronted = await start();
    const { baseUrl: baseURL, key: apiKey } = fronted.endpoint;
    client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  });
  afterAll(() => fronted[Symbol.asyncDispose]());

  const asking = (content: string) => ({
    model: fronted.chatModel,
    messages: [{ role: "user" as const, content }],
  });

  test("lists the models with what they can do", async () => {
    const models = await Array.fromAsync(client.models.list());
    const able = (id: string) => models.find((model) => model.id === id);
    expect(able(fronted.chatModel)).toMatchObject({
      capabilities: { completion: true, tools: true, embedding: false },
    });
    const vectors = { capabilities: { completion: false, embedding: true } };
    if (embeds) expect(able(fronted.embedModel)).toMatchObject(vectors);
  });

  test("chats, whole and streamed, with one id and model on every chunk", async () => {
    const whole = await client.chat.completions.create(asking(questions.text));
    expect(whole).toMatchObject({ model: fronted.chatModel, usage: { completion_tokens: 3 } });
    expect(whole.choices).toEqual([
      {
        index: 0,
        message: { role: "assistant", content: said.text, refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
    const stream = await client.chat.completions.create({ ...asking(questions.text), stream: true });
    const chunks = await Array.fromAsync(stream);
    expect(new Set(chunks.map(({ id, model }) => `${id} ${model}`)).size).toBe(1);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(said.text);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
  });

  test("hears the reasoning apart from the text", async () => {
    const { choices } = await client.chat.completions.create(asking(questions.thoughts));
    const message = { content: said.text, reasoning_content: said.thoughts, reasoning: said.thoughts };
    expect(choices[0]?.message).toMatchObject(message);
  });

  test.each([false, true])("runs a tool, with stream %s, and comes to the end of its loop", async (stream) => {
    const asked: unknown[] = [];
    const weather = {
      type: "function" as const,
      function: {
        name: "get_weather",
        description: "The weather of a city",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        parse: (text: string): unknown => JSON.parse(text),
        function: (given: unknown) => {
          asked.push(given);
          return "7 degrees";
        },
      },
    };
    const ask = { ...asking(questions.tool), tools: [weather] };
    const { chat } = client;
    const runner = stream ? chat.completions.runTools({ ...ask, stream }) : chat.completions.runTools(ask);
    expect(await runner.finalContent()).toBe(said.text);
    expect(asked).toEqual([said.city]);
    expect(runner.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test("gets several answers when it asks for them, whole and streamed, and pays the prompt once", async () => {
    const one = await client.chat.completions.create(asking(questions.text));
    const whole = await client.chat.completions.create({ ...asking(questions.text), n: 3 });
    const told = whole.choices.map(({ index, message, finish_reason: finish }) => [index, message.content, finish]);
    expect(told).toEqual([0, 1, 2].map((index) => [index, said.text, "stop"]));
    expect(whole.usage).toMatchObject({ completion_tokens: 9, prompt_tokens: one.usage?.prompt_tokens });
    const runner = client.chat.completions.stream({ ...asking(questions.text), n: 2 });
    const { choices } = await runner.finalChatCompletion();
    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, said.text],
      [1, said.text],
    ]);
  });

  if (!knowsLogprobs)
    test("is refused logprobs that the runtime does not know", async () => {
      const asked = client.chat.completions.create({ ...asking(questions.text), logprobs: true });
      const error = await asked.then(String, (thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ code: "unsupported_parameter", param: "logprobs" });
    });

  if (knowsLogprobs)
    test("gets the logprobs of every token", async () => {
      const { choices } = await client.chat.completions.create({ ...asking(questions.text), logprobs: true });
      const tokens = choices[0]?.logprobs?.content ?? [];
      expect(tokens.map(({ token }) => token).join("")).toBe(said.text);
      expect(tokens.every(({ logprob, top_logprobs: top }) => logprob <= 0 && Array.isArray(top))).toBe(true);
    });

  if (embeds)
    test("gets embeddings, each in its place", async () => {
      const model = fronted.embedModel;
      const { data, usage } = await client.embeddings.create({ model, input: ["one", "two", "one"] });
      expect(data.map(({ index }) => index)).toEqual([0, 1, 2]);
      expect(data[2]?.embedding).toEqual(data[0]?.embedding);
      expect(data[1]?.embedding).not.toEqual(data[0]?.embedding);
      expect(usage.prompt_tokens).toBeGreaterThan(0);
    });
});
