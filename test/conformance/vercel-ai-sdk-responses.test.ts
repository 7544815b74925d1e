import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, streamText } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { weatherOfAiSdk } from "./ai-sdk-weather.ts";
import { answerAsOpenAi, questions, said } from "./knowing-model.ts";
import { failInTheMiddle } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";
import { WatchedFetch } from "./watched-fetch.ts";

/** What its users say to a service that keeps nothing: else it sends only the ids of earlier items. */
const providerOptions = { openai: { store: false } };

describe("the Vercel AI SDK's own provider for OpenAI, which speaks the Responses API,", () => {
  let staged: StagedVllm;
  let watched: WatchedFetch;
  beforeAll(async () => void (staged = await startStagedVllm()));
  beforeEach(() => {
    watched = new WatchedFetch();
    staged.answers(answerAsOpenAi);
  });
  afterAll(() => staged[Symbol.asyncDispose]());

  const model = (id = staged.model) => {
    const { baseUrl: baseURL, key: apiKey } = staged.up.endpoint;
    return createOpenAI({ baseURL, apiKey, fetch: watched.fetch })(id);
  };
  const weather = () => ({ ...weatherOfAiSdk(), providerOptions });

  test("chats", async () => {
    const { text, finishReason, usage } = await generateText({ model: model(), prompt: questions.text });
    expect({ text, finishReason }).toEqual({ text: said.text, finishReason: "stop" });
    expect(usage.outputTokens).toBe(3);
    expect(watched.sent.map(({ path }) => path)).toEqual(["/v1/responses"]);
  });

  test("streams piece by piece, and hears the usage", async () => {
    const { textStream, finishReason, usage } = streamText({ model: model(), prompt: questions.text });
    expect(await Array.fromAsync(textStream)).toEqual(said.words);
    expect(await finishReason).toBe("stop");
    expect((await usage).outputTokens).toBe(3);
  });

  test("runs a tool and comes to the end of its loop", async () => {
    const { asked, ...calling } = weather();
    const { text, steps } = await generateText({ model: model(), prompt: questions.tool, ...calling });
    expect(asked).toEqual([said.city]);
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    expect(text).toBe(said.text);
  });

  test("runs a tool out of a stream, and comes to the end of its loop", async () => {
    const { asked, ...calling } = weather();
    const { steps, text } = streamText({ model: model(), prompt: questions.tool, ...calling });
    expect(await text).toBe(said.text);
    expect((await steps).map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
    expect(asked).toEqual([said.city]);
  });

  test("is told what to say when it counts on what is not kept", async () => {
    const { asked: _, providerOptions: _keeps, ...calling } = weather();
    const error = await thrownBy(generateText({ model: model(), prompt: questions.tool, ...calling }));
    expect(error).toMatchObject({ statusCode: 400, message: expect.stringContaining("'store: false'") });
  });

  test("hears the reasoning apart from the text where it asks for it, and leaves it out when it goes on", async () => {
    const asked = { openai: { ...providerOptions.openai, reasoningSummary: "auto", forceReasoning: true } };
    const ask = { model: model(), prompt: questions.thoughts, providerOptions: asked };
    const whole = await generateText(ask);
    expect([whole.reasoningText, whole.text]).toEqual([said.thoughts, said.text]);
    const streamed = streamText(ask);
    expect([await streamed.reasoningText, await streamed.text]).toEqual([said.thoughts, said.text]);
    const { messages } = await streamed.response;
    const more = { role: "user" as const, content: questions.text };
    await generateText({ ...ask, prompt: [{ role: "user", content: questions.thoughts }, ...messages, more] });
    const sentBack = [{ role: "user" }, { role: "assistant", content: said.text }, more];
    expect(staged.asked()["messages"]).toMatchObject(sentBack);
  });

  test("throws what the contract says for a model that does not exist", async () => {
    const error = await thrownBy(generateText({ model: model("absent"), prompt: "Hello" }));
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 404, isRetryable: false, data: { error: { code: "model_not_found" } } });
  });

  test("throws what fails in the middle of a stream", async () => {
    staged.answers(failInTheMiddle);
    const errors: unknown[] = [];
    const asking = streamText({ model: model(), prompt: "Hello", onError: ({ error }) => void errors.push(error) });
    await asking.consumeStream();
    expect(errors).toMatchObject([{ code: "upstream_error", type: "server_error" }]);
    expect(await asking.finishReason).toBe("error");
  });
});

describe("the same provider, as it is by default, where responses are stored,", () => {
  test("runs a tool and comes to the end of its loop, and sends only the ids of earlier items", async () => {
    await using staged = await startStagedVllm({ TRUNKLINE_STORE_RESPONSES: "on" });
    staged.answers(answerAsOpenAi);
    const { baseUrl: baseURL, key: apiKey } = staged.up.endpoint;
    const watched = new WatchedFetch();
    const model = createOpenAI({ baseURL, apiKey, fetch: watched.fetch })(staged.model);
    const { asked, ...calling } = weatherOfAiSdk();
    const { text } = await generateText({ model, prompt: questions.tool, ...calling });
    expect([asked, text]).toEqual([[said.city], said.text]);
    expect(JSON.stringify(watched.sent.at(-1)?.body)).toContain("item_reference");
    expect(staged.asked()["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", content: said.text, tool_calls: [{ function: { name: "get_weather" } }] },
      { role: "tool" },
    ]);
  });
});
