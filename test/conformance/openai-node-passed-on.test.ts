import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sayHello, sayLikely } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { WatchedFetch } from "./watched-fetch.ts";

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("a request of the official SDK reaches the runtime:", () => {
  let staged: StagedVllm;
  let client: OpenAI;
  let watched: WatchedFetch;
  beforeAll(async () => void (staged = await startStagedVllm()));
  beforeEach(() => {
    watched = new WatchedFetch();
    const { baseUrl: baseURL, key: apiKey } = staged.up.endpoint;
    client = new OpenAI({ baseURL, apiKey, maxRetries: 0, fetch: watched.fetch });
    staged.answers((chat) => (chat.request.body["logprobs"] === true ? sayLikely(chat) : sayHello(chat)));
  });
  afterAll(() => staged[Symbol.asyncDispose]());

  const hello = [{ role: "user" as const, content: "Hello" }];
  const chat = (fields: Partial<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming>) =>
    client.chat.completions.create({ model: staged.model, messages: hello, ...fields });

  test("every way to say how the answer is drawn, under its own name", async () => {
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
    expect(staged.asked()).toMatchObject(drawn);
    await chat({ stop: "END", max_completion_tokens: 9 });
    expect(staged.asked()).toMatchObject({ stop: ["END"], max_tokens: 9 });
    await chat({ max_tokens: 8 });
    expect(staged.asked()).toMatchObject({ max_tokens: 8 });
    expect(watched.ignored).toEqual([]);
  });

  test("nothing that the client did not say, but what the gateway itself must know", async () => {
    await chat({});
    const fields = ["cache_salt", "messages", "model", "stream", "stream_options"];
    expect(Object.keys(staged.asked()).toSorted()).toEqual(fields);
  });

  test("the words of each role, a developer's as the system's", async () => {
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
      { role: "developer", content: "Be brief." },
      { role: "system", content: [{ type: "text", text: "Be kind." }] },
      { role: "user", content: "Hello", name: "ann" },
      { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      { role: "user", content: [{ type: "text", text: "Please" }] },
    ];
    await chat({ messages });
    const told = staged.asked()["messages"] as { role: string }[];
    expect(told.map(({ role }) => role)).toEqual(["system", "system", "user", "assistant", "user"]);
    for (const said of ["Be brief.", "Be kind.", "Hello", "No.", "Please"])
      expect(JSON.stringify(told)).toContain(said);
  });

  test("images as they are, between their texts", async () => {
    const content: OpenAI.Chat.ChatCompletionContentPart[] = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: pixel, detail: "low" } },
      { type: "text", text: "And this?" },
      { type: "image_url", image_url: { url: pixel } },
    ];
    await chat({ messages: [{ role: "user", content }] });
    expect(staged.asked()["messages"]).toEqual([{ role: "user", content }]);
  });

  test("an answer that is sent back as it came, with all that the SDK put into it", async () => {
    staged.answers((answer) => {
      answer.think("Hm.");
      sayHello(answer);
    });
    const { choices } = await chat({});
    const [{ message } = expect.fail("there was no choice")] = choices;
    await chat({ messages: [...hello, message, { role: "user", content: "Again" }] });
    expect(staged.asked()["messages"]).toMatchObject([
      ...hello,
      { role: "assistant", content: "Hello there." },
      { role: "user" },
    ]);
    const runner = client.chat.completions.stream({ model: staged.model, messages: hello });
    const streamed = await runner.finalMessage();
    await chat({ messages: [...hello, streamed, { role: "user", content: "Again" }] });
    expect(watched.statuses).toEqual([200, 200, 200, 200]);
    expect(watched.ignored).toEqual([]);
  });

  test("and a model whose id has a slash and a colon is found by it", async () => {
    expect(await client.models.retrieve(staged.model)).toMatchObject({ id: staged.model, object: "model" });
    const ids = (await Array.fromAsync(client.models.list())).map(({ id }) => id);
    expect(ids).toEqual([staged.model]);
  });
});
