import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAI as LangChainOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";
import { APIError, BadRequestError, NotFoundError, type OpenAI } from "openai";
import { beforeEach, describe, expect, test } from "vitest";
import { until } from "../harness/until.ts";
import { stagedOpenAi } from "./staged-openai.ts";
import { thrownBy } from "./thrown-by.ts";

/** What it warns of is looked at where it matters. */
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

describe("a text that is continued as it is, without a template,", () => {
  const on = stagedOpenAi();
  beforeEach(() => {
    on.stage.vllm.onText = (text) => {
      const { prompt } = text.request.body as { prompt: string };
      for (const word of [" after", ` ${prompt}`]) text.say(word);
      text.done();
    };
  });

  const ask = (prompt: string | string[], fields: object = {}) => ({ model: on.stage.model, prompt, ...fields });
  const told = ({ choices }: OpenAI.Completion) => choices.map(({ index, text }) => [index, text]);

  test("a text that is continued as it is, without a template, comes whole, with every field of the schema", async () => {
    expect(await on.client.completions.create(ask("One"))).toEqual({
      id: expect.stringMatching(/^cmpl-\w{10,}$/),
      object: "text_completion",
      created: expect.closeTo(Date.now() / 1_000, -2),
      model: on.stage.model,
      choices: [{ text: " after One", index: 0, logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 },
    });
    // What OpenAI gives unless it is asked for more.
    expect(on.stage.vllm.texts.at(-1)?.body).toMatchObject({ prompt: "One", max_tokens: 16 });
  });

  test("a text that is continued as it is, without a template, comes piece by piece, with the usage at the end if that is wanted", async () => {
    const asked = { ...ask("One"), stream: true as const };
    const plain = await Array.fromAsync(await on.client.completions.create(asked));
    expect(plain.map(({ choices }) => choices[0]?.text).join("")).toBe(" after One");
    expect(plain.map(({ choices }) => choices[0]?.finish_reason).filter(Boolean)).toEqual(["stop"]);
    expect(plain.every((chunk) => !("usage" in chunk))).toBe(true);
    const counted = await Array.fromAsync(
      await on.client.completions.create({ ...asked, stream_options: { include_usage: true } }),
    );
    expect(counted.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
    expect(counted.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(new Set(counted.map(({ id, model }) => `${id} ${model}`)).size).toBe(1);
  });

  test("a text that is continued as it is, without a template, is one of several, each continued as often as is asked, and in its order", async () => {
    const whole = await on.client.completions.create(ask(["One", "Two"], { n: 2 }));
    const inOrder = [
      [0, " after One"],
      [1, " after One"],
      [2, " after Two"],
      [3, " after Two"],
    ];
    expect(told(whole)).toEqual(inOrder);
    const asked = { ...ask(["One", "Two"], { n: 2 }), stream: true as const };
    const chunks = await Array.fromAsync(await on.client.completions.create(asked));
    const texts = ["", "", "", ""];
    for (const { choices } of chunks) for (const { index, text } of choices) texts[index] += text;
    expect(texts.map((text, index) => [index, text])).toEqual(inOrder);
  });

  test("a text that is continued as it is, without a template, is told before what follows it, where that is asked for", async () => {
    const whole = await on.client.completions.create(ask(["One", "Two"], { echo: true }));
    expect(told(whole)).toEqual([
      [0, "One after One"],
      [1, "Two after Two"],
    ]);
    const stream = await on.client.completions.create({ ...ask("One", { echo: true }), stream: true });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map(({ choices }) => choices[0]?.text).join("")).toBe("One after One");
  });

  test("a text that is continued as it is, without a template, has how likely its tokens were told in lists side by side", async () => {
    const tokens = [" after", " this", " One"];
    const offsets = [0, 6, 11];
    on.stage.vllm.onText = (text) => {
      const top = tokens.map((token) => ({ [token]: -0.25 }));
      const both = { tokens: tokens.slice(0, 2), token_logprobs: [-0.25, -0.25], top_logprobs: top.slice(0, 2) };
      const logprobs = { ...both, text_offset: [0, 6] };
      text.event({ choices: [{ index: 0, text: " after this", logprobs, finish_reason: null }] });
      text.say(" One");
      text.done();
    };
    const { choices } = await on.client.completions.create(ask("One", { logprobs: 1 }));
    const { logprobs } = choices[0] ?? expect.fail("there was no choice");
    expect(logprobs).toMatchObject({ tokens, token_logprobs: [-0.25, -0.25, -0.25], text_offset: offsets });
    expect(logprobs?.top_logprobs?.map((others) => Object.keys(others))).toEqual(tokens.map((token) => [token]));
    const stream = await on.client.completions.create({ ...ask("One", { logprobs: 1 }), stream: true });
    const chunks = await Array.fromAsync(stream);
    const pieces = chunks.flatMap(({ choices: [choice] }) => choice?.logprobs ?? []);
    expect(pieces.flatMap((piece) => piece.tokens)).toEqual(tokens);
    expect(pieces.flatMap((piece) => piece.text_offset)).toEqual(offsets);
  });

  test("a text that is continued as it is, without a template, is refused with the parameter where it asks for what nothing here gives", async () => {
    for (const [fields, param] of [
      [{ prompt: [1, 2, 3] }, "prompt"],
      [{ best_of: 3 }, "best_of"],
      [{ echo: true, logprobs: 1 }, "logprobs"],
      [{ logprobs: 6 }, "logprobs"],
      [{ temperature: 3 }, "temperature"],
    ] as const) {
      const error = await thrownBy(on.client.post("/completions", { body: ask("One", fields) }));
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ type: "invalid_request_error", param });
    }
    const absent = await thrownBy(on.client.completions.create({ ...ask("One"), model: "absent" }));
    expect(absent).toBeInstanceOf(NotFoundError);
  });

  test("a text that is continued as it is, without a template, stops the runtime when its client leaves, and throws when the runtime fails", async () => {
    on.stage.vllm.onText = (text) => text.say(" after");
    const stream = await on.client.completions.create({ ...ask("One"), stream: true });
    for await (const { choices } of stream) if (choices[0]?.text === " after") break;
    await until(() => on.stage.vllm.atWork === 0, { what: "the runtime to stop" });
    expect(on.stage.vllm.texts.at(-1)).toMatchObject({ closedEarly: true });
    on.stage.vllm.onText = (text) => {
      text.say(" after");
      text.event({ error: { message: "CUDA out of memory", type: "InternalServerError", code: 500 } });
      text.end();
    };
    const broken = await on.client.completions.create({ ...ask("One"), stream: true });
    const error = await thrownBy(Array.fromAsync(broken));
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: "upstream_error", type: "server_error" });
  });

  test("a text that is continued as it is, without a template, comes to the Vercel AI SDK and to LangChain, whole and streamed, with nothing ignored", async () => {
    const { baseUrl: baseURL, key: apiKey } = on.stage.up.endpoint;
    const { fetch } = on.watched;
    const provider = createOpenAICompatible({ name: "trunkline", baseURL, apiKey, includeUsage: true, fetch });
    const asked = { model: provider.completionModel(on.stage.model), prompt: "One", maxRetries: 0 };
    expect((await generateText(asked)).text).toContain(" after");
    const streamed = streamText(asked);
    expect(await streamed.text).toContain(" after");
    expect((await streamed.usage).outputTokens).toBe(3);

    const configuration = { baseURL, fetch };
    const model = new LangChainOpenAI({ model: on.stage.model, apiKey, configuration, maxRetries: 0 });
    expect(await model.invoke("One")).toBe(" after One");
    expect((await Array.fromAsync(await model.stream("One"))).join("")).toBe(" after One");
    expect(on.watched.sent.map(({ path }) => path)).toEqual(Array(4).fill("/v1/completions"));
    expect([on.watched.statuses, on.watched.ignored]).toEqual([[200, 200, 200, 200], []]);
  });
});
