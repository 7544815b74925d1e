import { createOpenAICompatible, type OpenAICompatibleProvider } from "@ai-sdk/openai-compatible";
import { APICallError, generateObject, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { until } from "../harness/until.ts";
import { callTwice, failBefore, failInTheMiddle, sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";
import { WatchedFetch } from "./watched-fetch.ts";

const weather = z.object({ city: z.string(), degrees: z.number() });
const oslo = { city: "Oslo", degrees: 7 };

/** What it warns of is looked at where it matters. */
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

describe("the Vercel AI SDK", () => {
  let staged: StagedVllm;
  let watched: WatchedFetch;
  let trunkline: OpenAICompatibleProvider;
  beforeAll(async () => void (staged = await startStagedVllm({ TRUNKLINE_SLOTS: "1", TRUNKLINE_QUEUE_MAX: "0" })));
  beforeEach(() => {
    watched = new WatchedFetch();
    trunkline = provider();
    staged.answers(sayHello);
  });
  afterAll(() => staged[Symbol.asyncDispose]());

  const provider = (wishes: { supportsStructuredOutputs?: boolean } = {}) => {
    const { baseUrl: baseURL, key: apiKey } = staged.up.endpoint;
    const { fetch } = watched;
    return createOpenAICompatible({ name: "trunkline", baseURL, apiKey, includeUsage: true, fetch, ...wishes });
  };
  const asking = (prompt = "Hello") => ({ model: trunkline.chatModel(staged.model), prompt, maxRetries: 0 });

  test("the Vercel AI SDK sends nothing by itself that is refused or ignored, and its settings reach the runtime", async () => {
    const drawn = { temperature: 0.4, topP: 0.9, frequencyPenalty: 0.5, presencePenalty: -0.5, seed: 7 };
    const { warnings } = await generateText({
      ...asking(),
      ...drawn,
      system: "Be brief.",
      maxOutputTokens: 9,
      stopSequences: ["END"],
      providerOptions: { trunkline: { reasoningEffort: "low" } },
    });
    expect(warnings).toEqual([]);
    expect(staged.asked()).toMatchObject({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
      temperature: 0.4,
      top_p: 0.9,
      frequency_penalty: 0.5,
      presence_penalty: -0.5,
      seed: 7,
      max_tokens: 9,
      stop: ["END"],
      reasoning_effort: "low",
    });
    await streamText(asking()).consumeStream();
    expect([watched.statuses, watched.ignored]).toEqual([[200, 200], []]);
  });

  test("the Vercel AI SDK has what it ignores told by name", async () => {
    const providerOptions = { trunkline: { user: "ann", store: true } };
    const { response } = await generateText({ ...asking(), providerOptions });
    expect(response.headers?.["x-trunkline-ignored"]).toBe("user,store");
  });

  test("the Vercel AI SDK gets an object that is parsed, from a schema that the runtime was given", async () => {
    staged.answers(sayOslo);
    trunkline = provider({ supportsStructuredOutputs: true });
    expect((await generateObject({ ...asking(), schema: weather })).object).toEqual(oslo);
    expect(staged.asked()["response_format"]).toMatchObject({
      type: "json_schema",
      json_schema: { name: "response", strict: true, schema: { type: "object", required: ["city", "degrees"] } },
    });
    const { output } = await generateText({ ...asking(), output: Output.object({ schema: weather }) });
    expect(output).toEqual(oslo);
    const streamed = streamText({ ...asking(), output: Output.object({ schema: weather }) });
    expect(await streamed.output).toEqual(oslo);
    expect(watched.ignored).toEqual([]);
  });

  test("the Vercel AI SDK gets an object that is parsed, where it only asks for JSON of any kind", async () => {
    staged.answers(sayOslo);
    expect((await generateObject({ ...asking(), schema: weather })).object).toEqual(oslo);
    expect(staged.asked()["response_format"]).toEqual({ type: "json_object" });
  });

  test("the Vercel AI SDK runs two calls of one answer, and comes to the end of its loop", async () => {
    staged.answers(callTwice);
    const asked: string[] = [];
    const get_weather = tool({
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        asked.push(city);
        return "7 degrees";
      },
    });
    const { text, steps } = await generateText({ ...asking(), tools: { get_weather }, stopWhen: stepCountIs(3) });
    expect([text, asked.toSorted()]).toEqual(["Hello there.", ["Oslo", "Rome"]]);
    expect(steps[0]?.toolCalls.map(({ toolCallId }) => toolCallId)).toEqual(["call_Oslo", "call_Rome"]);
    const streamed = streamText({ ...asking(), tools: { get_weather }, stopWhen: stepCountIs(3) });
    expect(await streamed.text).toBe("Hello there.");
    expect(asked.toSorted()).toEqual(["Oslo", "Oslo", "Rome", "Rome"]);
    expect(watched.ignored).toEqual([]);
  });

  test("the Vercel AI SDK chooses among its tools as it says", async () => {
    staged.answers(callTwice);
    const tools = {
      get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "7 degrees" }),
    };
    const named = { type: "function", function: { name: "get_weather" } };
    for (const [choice, told] of [
      ["none", "none"],
      ["auto", "auto"],
      ["required", "required"],
      [{ type: "tool", toolName: "get_weather" }, named],
    ] as const) {
      await generateText({ ...asking(), tools, toolChoice: choice });
      expect(staged.asked()["tool_choice"]).toEqual(told);
    }
  });

  test("the Vercel AI SDK shows images to a model that sees", async () => {
    const image = new Uint8Array([137, 80, 78, 71]);
    const content = [
      { type: "text" as const, text: "What is this?" },
      { type: "file" as const, data: image, mediaType: "image/png" },
    ];
    const { model, maxRetries } = asking();
    await generateText({ model, maxRetries, messages: [{ role: "user", content }] });
    expect(staged.asked()["messages"]).toMatchObject([
      { content: [{ type: "text" }, { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" } }] },
    ]);
    expect(watched.ignored).toEqual([]);
  });

  test("the Vercel AI SDK stops the runtime when it leaves", async () => {
    staged.answers((chat) => chat.say("One "));
    const leaving = new AbortController();
    const { textStream } = streamText({ ...asking(), abortSignal: leaving.signal });
    for await (const piece of textStream) if (piece === "One ") leaving.abort();
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop" });
    expect(staged.vllm.chats.at(-1)).toMatchObject({ closedEarly: true });
  });

  test("the Vercel AI SDK sees a request through that a busy machine refuses, after the time that it was told", async () => {
    const held = Promise.withResolvers<FakeOpenAiChat>();
    staged.answers(held.resolve);
    const running = generateText(asking());
    const chat = await held.promise;
    staged.answers(sayHello);
    const waiting = generateText({ ...asking(), maxRetries: 1 });
    await until(() => watched.statuses[1] === 503, { what: "the first try to be refused" });
    sayHello(chat);
    expect([(await running).text, (await waiting).text]).toEqual(["Hello there.", "Hello there."]);
    expect(watched.statuses).toEqual([200, 503, 200]);
    const [, refused, again] = watched.sent;
    expect((again?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(995);
  });

  test("the Vercel AI SDK throws what the contract says, before an answer and in the middle of it", async () => {
    staged.answers(failBefore);
    const failing = await thrownBy(generateText(asking()));
    expect(APICallError.isInstance(failing)).toBe(true);
    expect(failing).toMatchObject({ statusCode: 502, isRetryable: true, data: { error: { code: "upstream_error" } } });
    const refused = await thrownBy(generateText({ ...asking(), temperature: 3 }));
    const told = { error: { code: "decimal_above_max_value", param: "temperature" } };
    expect(refused).toMatchObject({ statusCode: 400, isRetryable: false, data: told });
    staged.answers(failInTheMiddle);
    const { fullStream } = streamText({ ...asking(), onError: () => {} });
    const parts = await Array.fromAsync(fullStream);
    expect(parts.flatMap((part) => (part.type === "text-delta" ? part.text : []))).toEqual(["Hello "]);
    const errors = parts.flatMap((part) => (part.type === "error" ? [part.error] : []));
    expect(errors).toMatchObject([{ code: "upstream_error", type: "server_error" }]);
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: "error" });
  });
});

function sayOslo(chat: FakeOpenAiChat): void {
  chat.say(JSON.stringify(oslo));
  chat.done();
}
