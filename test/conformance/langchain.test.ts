import { HumanMessage, ToolMessage, type AIMessageChunk } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { frontedRuntimes, type Fronted } from "./fronted-runtimes.ts";
import { questions, said } from "./knowing-model.ts";

describe.each(frontedRuntimes)("LangChain, through $name,", ({ start, embeds }) => {
  let fronted: Fronted;
  beforeAll(async () => void (fronted = await start()));
  afterAll(() => fronted[Symbol.asyncDispose]());

  const connection = () => ({
    apiKey: fronted.endpoint.key,
    configuration: { baseURL: fronted.endpoint.baseUrl },
    maxRetries: 0,
  });
  const chat = () => new ChatOpenAI({ model: fronted.chatModel, ...connection() });
  const embeddings = () => new OpenAIEmbeddings({ model: fronted.embedModel, ...connection() });

  /** Asks for the tool, runs it, and asks again. */
  async function loop(ask: (messages: (HumanMessage | AIMessageChunk | ToolMessage)[]) => Promise<AIMessageChunk>) {
    const question = new HumanMessage(questions.tool);
    const calling = await ask([question]);
    const [call] = calling.tool_calls ?? [];
    if (call?.id === undefined) throw new Error("there was no call");
    const answered = new ToolMessage({ content: "7 degrees", tool_call_id: call.id });
    return { calling, call, last: await ask([question, calling, answered]) };
  }
  const weather = tool(() => "7 degrees", {
    name: "get_weather",
    description: "The weather of a city",
    schema: z.object({ city: z.string() }),
  });

  test("chats", async () => {
    const answer = await chat().invoke(questions.text);
    expect(answer.text).toBe(said.text);
    expect(answer.response_metadata).toMatchObject({ finish_reason: "stop", model_name: fronted.chatModel });
    expect(answer).toMatchObject({ usage_metadata: { output_tokens: 3 } });
  });

  test("streams piece by piece, and hears the usage", async () => {
    const chunks = await Array.fromAsync(await chat().stream(questions.text));
    expect(chunks.map(({ text }) => text).filter((text) => text !== "")).toEqual(said.words);
    const told = chunks.filter((chunk) => chunk.usage_metadata !== undefined);
    expect(told).toMatchObject([{ usage_metadata: { output_tokens: 3 } }]);
  });

  test("hears the reasoning apart from the text, whole and streamed", async () => {
    const whole = await chat().invoke(questions.thoughts);
    expect([whole.additional_kwargs["reasoning_content"], whole.text]).toEqual([said.thoughts, said.text]);
    const chunks = await Array.fromAsync(await chat().stream(questions.thoughts));
    const [first, ...rest] = chunks;
    const streamed = rest.reduce((sum, chunk) => sum.concat(chunk), first ?? expect.fail("the stream was empty"));
    expect([streamed.additional_kwargs["reasoning_content"], streamed.text]).toEqual([said.thoughts, said.text]);
  });

  test("runs a tool and comes to the end of its loop", async () => {
    const model = chat().bindTools([weather]);
    const { call, last } = await loop((messages) => model.invoke(messages));
    expect(call).toMatchObject({ name: "get_weather", args: said.city });
    expect([last.text, last.tool_calls]).toEqual([said.text, []]);
  });

  test("runs a tool out of a stream, and comes to the end of its loop", async () => {
    const model = chat().bindTools([weather]);
    const { calling, call, last } = await loop(async (messages) => {
      const [first, ...rest] = await Array.fromAsync(await model.stream(messages));
      if (first === undefined) throw new Error("the stream was empty");
      return rest.reduce((whole, chunk) => whole.concat(chunk), first);
    });
    expect(calling.response_metadata).toMatchObject({ finish_reason: "tool_calls" });
    expect(call).toMatchObject({ name: "get_weather", args: said.city });
    expect([last.text, last.tool_calls]).toEqual([said.text, []]);
  });

  if (embeds)
    test("embeds a query and documents, each in its place", async () => {
      const one = await embeddings().embedQuery("one");
      const [two, again] = await embeddings().embedDocuments(["two", "one"]);
      expect(one.length).toBeGreaterThan(1);
      expect(again).toEqual(one);
      expect(two).not.toEqual(one);
    });

  test("throws what the contract says for a model that does not exist", async () => {
    const asking = new ChatOpenAI({ model: "absent", ...connection() }).invoke("Hello");
    await expect(asking).rejects.toMatchObject({ status: 404, code: "model_not_found", param: "model" });
  });
});
