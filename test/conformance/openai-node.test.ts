import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";

let up: UpProcess;
let client: OpenAI;
beforeAll(async () => {
  up = await startUp();
  client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key });
});
afterAll(() => up[Symbol.asyncDispose]());

const asks = (content: string) => [{ role: "user" as const, content }];

test("the official SDK, changed in nothing but base URL and key, lists the models, page by page, and finds one by its id", async () => {
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual(["scripted", "scripted:embed", "scripted:mlx", "scripted:plain", "scripted:vision"]);
  const model = await client.models.retrieve("scripted:plain");
  expect(model).toMatchObject({ id: "scripted:plain", object: "model", runtime_profile: "auto" });
  expect(model.created).toEqual(expect.any(Number));
  expect(model).not.toHaveProperty("apple_mlx");
});

test("the official SDK, changed in nothing but base URL and key, chats, and gets every field of the schema", async () => {
  const { data, request_id: requestId } = await client.chat.completions
    .create({ model: "scripted:plain", messages: asks("/script tokens=3 nonce=abc") })
    .withResponse();
  expect(requestId).toMatch(/^req_/);
  expect(data).toEqual({
    id: expect.stringMatching(/^chatcmpl-\w{10,}$/),
    object: "chat.completion",
    created: expect.closeTo(Date.now() / 1_000, -2),
    model: "scripted:plain",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "abc-0 abc-1 abc-2 ", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: expect.objectContaining({ completion_tokens: 3, prompt_tokens: 3, total_tokens: 6 }),
  });
});

test("the official SDK, changed in nothing but base URL and key, streams, with one id over all chunks and one finish", async () => {
  const messages = asks("/script tokens=20 delay_ms=2 nonce=abc");
  const stream = await client.chat.completions.create({ model: "scripted", messages, stream: true });
  const chunks = await Array.fromAsync(stream);
  expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1);
  const choices = chunks.map(({ choices: [choice] }) => choice);
  expect(choices[0]?.delta.role).toBe("assistant");
  const whole = Array.from({ length: 20 }, (_, index) => `abc-${index} `).join("");
  expect(choices.map((choice) => choice?.delta.content ?? "").join("")).toBe(whole);
  expect(choices.map((choice) => choice?.finish_reason).filter((reason) => reason !== null)).toEqual(["stop"]);
  expect(chunks.every((chunk) => !("usage" in chunk))).toBe(true);
});

test("the official SDK, changed in nothing but base URL and key, streams with usage: null in all chunks but the last, which has no choices", async () => {
  const stream = await client.chat.completions.create({
    model: "scripted",
    messages: asks("/script tokens=5 delay_ms=2"),
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await Array.fromAsync(stream);
  const last = chunks.at(-1);
  expect(last?.choices).toEqual([]);
  expect(last?.usage).toMatchObject({ completion_tokens: 5, prompt_tokens: 3, total_tokens: 8 });
  expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
});

test("the official SDK, changed in nothing but base URL and key, honours a limit of tokens and a stop, and says why it ended", async () => {
  const ask = { model: "scripted", messages: asks("/script tokens=50 nonce=abc") };
  const limited = await client.chat.completions.create({ ...ask, max_completion_tokens: 2 });
  expect(limited.choices[0]).toMatchObject({ message: { content: "abc-0 abc-1 " }, finish_reason: "length" });
  const stopped = await client.chat.completions.create({ ...ask, stop: "abc-3" });
  expect(stopped.choices[0]).toMatchObject({ message: { content: "abc-0 abc-1 abc-2 " }, finish_reason: "stop" });
});

test("the official SDK, changed in nothing but base URL and key, gets the reasoning apart from the text, whole and streamed", async () => {
  const ask = { model: "scripted", messages: asks("/script tokens=2 think=3 nonce=abc") };
  const whole = await client.chat.completions.create(ask);
  const reasoning = "think-0 think-1 think-2 ";
  expect(whole.choices[0]?.message).toMatchObject({
    content: "abc-0 abc-1 ",
    reasoning,
    reasoning_content: reasoning,
  });
  expect(whole.usage?.completion_tokens_details?.reasoning_tokens).toBe(3);
  const runner = client.chat.completions.stream(ask);
  const thoughts: unknown[] = [];
  let mixed = false;
  runner.on("chunk", ({ choices: [choice] }) => {
    const delta: object = choice?.delta ?? {};
    mixed ||= "reasoning" in delta && "content" in delta;
    if ("reasoning" in delta) thoughts.push(delta.reasoning);
  });
  expect((await runner.finalMessage()).content).toBe("abc-0 abc-1 ");
  expect([thoughts.join(""), mixed]).toEqual([reasoning, false]);
});

test("the official SDK, changed in nothing but base URL and key, aborts in the middle of a stream, and the one slot of the machine is free again", async () => {
  await using narrow = await startUp({ TRUNKLINE_SLOTS: "1" });
  const { chat } = new OpenAI({ baseURL: narrow.endpoint.baseUrl, apiKey: narrow.endpoint.key });
  const messages = asks("/script tokens=100000 delay_ms=10 nonce=abc");
  const stream = await chat.completions.create({ model: "scripted", messages, stream: true });
  let chunks = 0;
  for await (const _chunk of stream) {
    chunks += 1;
    if (chunks === 5) stream.controller.abort();
  }
  expect(chunks).toBeGreaterThanOrEqual(5);
  expect(chunks).toBeLessThan(1_000);
  const next = await chat.completions.create({ model: "scripted", messages: asks("/script tokens=1") });
  expect(next.choices[0]?.message.content).toBe("token-0 ");
});
