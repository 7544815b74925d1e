import { createOpenAICompatible, type OpenAICompatibleProvider } from "@ai-sdk/openai-compatible";
import { APICallError, cosineSimilarity, embed, embedMany, generateText, streamText } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { weatherOfAiSdk } from "./ai-sdk-weather.ts";
import { frontedRuntimes, type Fronted } from "./fronted-runtimes.ts";
import { questions, said } from "./knowing-model.ts";

describe.each(frontedRuntimes)("the Vercel AI SDK, through $name,", ({ start, embeds }) => {
  let fronted: Fronted;
  let trunkline: OpenAICompatibleProvider;
  beforeAll(async () => {
    fronted = await start();
    const { baseUrl: baseURL, key: apiKey } = fronted.endpoint;
    trunkline = createOpenAICompatible({ name: "trunkline", baseURL, apiKey, includeUsage: true });
  });
  afterAll(() => fronted[Symbol.asyncDispose]());

  const chatModel = () => trunkline.chatModel(fronted.chatModel);

  test("chats", async () => {
    const { text, finishReason, usage, response } = await generateText({ model: chatModel(), prompt: questions.text });
    expect({ text, finishReason }).toEqual({ text: said.text, finishReason: "stop" });
    expect(usage.outputTokens).toBe(3);
    expect(response.modelId).toBe(fronted.chatModel);
  });

  test("streams piece by piece, and hears the usage", async () => {
    const { textStream, finishReason, usage } = streamText({ model: chatModel(), prompt: questions.text });
    expect(await Array.fromAsync(textStream)).toEqual(said.words);
    expect(await finishReason).toBe("stop");
    expect((await usage).outputTokens).toBe(3);
  });

  test("hears the reasoning apart from the text, whole and streamed", async () => {
    const ask = { model: chatModel(), prompt: questions.thoughts };
    const whole = await generateText(ask);
    expect([whole.reasoningText, whole.text]).toEqual([said.thoughts, said.text]);
    const streamed = streamText(ask);
    expect([await streamed.reasoningText, await streamed.text]).toEqual([said.thoughts, said.text]);
  });

  test("runs a tool and comes to the end of its loop", async () => {
    const { asked, ...calling } = weatherOfAiSdk();
    const { text, steps } = await generateText({ model: chatModel(), prompt: questions.tool, ...calling });
    expect(asked).toEqual([said.city]);
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    expect(text).toBe(said.text);
  });

  test("runs a tool out of a stream, and comes to the end of its loop", async () => {
    const { asked, ...calling } = weatherOfAiSdk();
    const { steps, text } = streamText({ model: chatModel(), prompt: questions.tool, ...calling });
    expect(await text).toBe(said.text);
    expect((await steps).map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    expect(asked).toEqual([said.city]);
  });

  if (embeds)
    test("embeds one text and several, each in its place", async () => {
      const model = trunkline.embeddingModel(fronted.embedModel);
      const one = await embed({ model, value: "one" });
      const { embeddings, usage } = await embedMany({ model, values: ["two", "one"] });
      expect(embeddings).toHaveLength(2);
      expect(cosineSimilarity(one.embedding, embeddings[1] ?? [])).toBeCloseTo(1, 6);
      expect(cosineSimilarity(one.embedding, embeddings[0] ?? [])).toBeLessThan(0.99);
      expect(usage.tokens).toBeGreaterThan(0);
    });

  test("throws what the contract says for a model that does not exist", async () => {
    const failing = generateText({ model: trunkline.chatModel("absent"), prompt: "Hello" });
    const error = await failing.then(String, (thrown: unknown) => thrown);
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 404, isRetryable: false, data: { error: { code: "model_not_found" } } });
  });
});
