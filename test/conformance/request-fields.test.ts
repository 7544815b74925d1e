import OpenAI, { BadRequestError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import {
  assistantFields,
  chatFields,
  completionFields,
  contentParts,
  embeddingFields,
  responseFields,
  roles,
  streamOptions,
  toolTypes,
  type Treatment,
} from "./request-fields.ts";
import { sayHello, sayLikely } from "./staged-answers.ts";
import { stagedOpenAi } from "./staged-openai.ts";
import { thrownBy } from "./thrown-by.ts";

type Fields = Readonly<Record<string, unknown>>;
type Row = readonly [name: string, treatment: Treatment<unknown>];

const rows = (table: Readonly<Record<string, Treatment<unknown>>>): Row[] => Object.entries(table);

/** What must stand beside a field that means nothing alone. */
const beside: Readonly<Record<string, Fields>> = {
  top_logprobs: { logprobs: true },
  tool_choice: { tools: chatFields.tools.value },
  parallel_tool_calls: { tools: chatFields.tools.value },
  stream_options: { stream: true },
};

const besideInResponse: Readonly<Record<string, Fields>> = {
  top_logprobs: { include: responseFields.include.value },
  tool_choice: { tools: responseFields.tools.value },
  parallel_tool_calls: { tools: responseFields.tools.value },
  stream_options: { stream: true },
};

describe("every request field that the official SDK knows:", () => {
  const on = stagedOpenAi((chat) => (chat.request.body["logprobs"] === true ? sayLikely(chat) : sayHello(chat)));

  /** Sends fields of any kind, and says what was ignored. */
  async function send(path: string, fields: Fields): Promise<string | null> {
    const { headers } = await on.client.post(path, { body: fields }).asResponse();
    return headers.get("x-trunkline-ignored");
  }

  /** Sends one field in every way that its treatment tells of. */
  async function expectTreated(
    [name, treatment]: Row,
    how: {
      readonly send: (value: unknown) => Promise<string | null>;
      readonly asked: () => unknown;
      readonly param: string;
    },
  ): Promise<void> {
    if (treatment.as === "refused") {
      const error = await thrownBy(how.send(treatment.value));
      expect(error).toBeInstanceOf(BadRequestError);
      expect(error).toMatchObject({ type: "invalid_request_error", param: treatment.param ?? how.param });
      if (treatment.neutral !== undefined) expect(await how.send(treatment.neutral)).toBeNull();
      return;
    }
    const ignored = await how.send(treatment.value);
    if (treatment.as === "ignored") {
      expect(ignored).toBe(how.param);
      expect(JSON.stringify(how.asked())).not.toContain(`"${name}":`);
      return;
    }
    expect(ignored).toBeNull();
    expect(how.asked()).toMatchObject(treatment.asks ?? { [name]: treatment.value });
  }

  /** The first part of the first message, which may be sent as a mere text. */
  function firstPart(): unknown {
    const { content } = (on.stage.asked()["messages"] as { content: string | unknown[] }[])[0] ?? {};
    return typeof content === "string" ? { type: "text", text: content } : content?.[0];
  }

  const hello = { role: "user", content: "Hello" };
  const ask = (fields: Fields) => send("/chat/completions", { messages: [hello], ...fields, model: on.stage.model });

  test.each(rows(chatFields))("a chat's %s is treated as it is told", async (name, treatment) => {
    const around = beside[name] ?? {};
    const told = name === "model" ? { ...treatment, value: on.stage.model } : treatment;
    const sendOne = (value: unknown) => ask({ ...around, [name]: value });
    await expectTreated([name, told], { send: sendOne, asked: on.stage.asked, param: name });
  });

  test.each(rows(streamOptions))("a stream's %s is treated as it is told", (name, treatment) =>
    expectTreated([name, treatment], {
      send: (value) => ask({ stream: true, stream_options: { [name]: value } }),
      asked: on.stage.asked,
      param: `stream_options.${name}`,
    }),
  );

  test.each(rows(assistantFields))("an assistant's %s is treated as it is told", (name, treatment) => {
    const answer = { role: "tool", tool_call_id: "call_1", content: "7 degrees" };
    const after = name === "tool_calls" ? [answer] : [];
    const messageWith = (value: unknown) => ({
      role: "assistant",
      ...(name === "refusal" || name === "tool_calls" ? {} : { content: "Well." }),
      [name]: value,
    });
    return expectTreated([name, treatment], {
      send: (value) => ask({ messages: [hello, messageWith(value), ...after, hello] }),
      asked: () => (on.stage.asked()["messages"] as unknown[])[1],
      param: `messages[1].${name}`,
    });
  });

  test.each(Object.entries(roles))("the role %s is heard by the runtime as %s", async (role, heard) => {
    const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } };
    const before = role === "tool" ? [{ role: "assistant", tool_calls: [call] }] : [];
    const ids = role === "tool" ? { tool_call_id: "call_1" } : {};
    const asking = ask({ messages: [...before, { role, content: "Well.", ...ids }, hello] });
    if (heard === undefined) {
      expect(await thrownBy(asking)).toMatchObject({ status: 400, code: "invalid_value", param: "messages[0].role" });
      return;
    }
    expect(await asking).toBeNull();
    const told = on.stage.asked()["messages"] as { role: string; content: unknown }[];
    expect(told.at(-2)).toMatchObject({ role: heard, content: "Well." });
  });

  test.each(rows(contentParts))("a part of the type %s is treated as it is told", (name, treatment) =>
    expectTreated([name, treatment.as === "honoured" ? { ...treatment, asks: treatment.value as object } : treatment], {
      send: (part) => ask({ messages: [{ role: "user", content: [part] }] }),
      asked: firstPart,
      param: "messages[0].content[0].type",
    }),
  );

  test.each(rows(toolTypes))("a tool of the type %s is treated as it is told", (name, treatment) =>
    expectTreated(
      [name, treatment.as === "honoured" ? { asks: { tools: [treatment.value] }, ...treatment } : treatment],
      {
        send: (tool) => ask({ tools: [tool] }),
        asked: on.stage.asked,
        param: "tools[0].type",
      },
    ),
  );

  const askResponse = (fields: Fields) => send("/responses", { input: "Hello", ...fields, model: on.stage.model });

  test.each(rows(responseFields))("a response's %s is treated as it is told", async (name, treatment) => {
    const around = besideInResponse[name] ?? {};
    const told = name === "model" ? { ...treatment, value: on.stage.model } : treatment;
    const sendOne = (value: unknown) => askResponse({ ...around, [name]: value });
    await expectTreated([name, told], { send: sendOne, asked: on.stage.asked, param: name });
  });

  test("marks of OpenAI's own cache are ignored on any part of a message", async () => {
    const prompt_cache_breakpoint = { mode: "explicit" } as const;
    const content = [{ type: "text", text: "Hello", prompt_cache_breakpoint }];
    expect(await ask({ messages: [{ role: "user", content }] })).toBe("messages[0].content[0].prompt_cache_breakpoint");
  });

  test("null counts as a field that is not there", async () => {
    const nothing = Object.fromEntries(Object.keys(chatFields).map((name) => [name, null]));
    expect(await ask({ ...nothing, messages: [hello] })).toBeNull();
    expect(Object.keys(on.stage.asked()).toSorted()).toEqual([
      "cache_salt",
      "messages",
      "model",
      "stream",
      "stream_options",
    ]);
  });

  test("null counts as a field that is not there in a response too", async () => {
    const nothing = Object.fromEntries(Object.keys(responseFields).map((name) => [name, null]));
    expect(await askResponse({ ...nothing, input: "Hello" })).toBeNull();
    expect(Object.keys(on.stage.asked()).toSorted()).toEqual([
      "cache_salt",
      "messages",
      "model",
      "stream",
      "stream_options",
    ]);
  });

  /** Some mean nothing to a runtime, which is asked for one answer to one text at a time. */
  test.each(rows(completionFields))("a completion's %s is treated as it is told", (name, treatment) => {
    const around = { model: on.stage.model, prompt: "Once upon", ...(name === "stream_options" && { stream: true }) };
    return expectTreated([name, name === "model" ? { ...treatment, value: on.stage.model } : treatment], {
      send: (value) => send("/completions", { ...around, [name]: value }),
      asked: () => on.stage.vllm.texts.at(-1)?.body,
      param: name,
    });
  });

  test("null counts as a field that is not there in a completion too", async () => {
    const nothing = Object.fromEntries(Object.keys(completionFields).map((name) => [name, null]));
    expect(await send("/completions", { ...nothing, model: on.stage.model, prompt: "Once upon" })).toBeNull();
    const asked = Object.keys(on.stage.vllm.texts.at(-1)?.body ?? {});
    expect(asked.toSorted()).toEqual(["cache_salt", "max_tokens", "model", "prompt", "stream", "stream_options"]);
  });
});

describe("every field of an embeddings request that the official SDK knows:", () => {
  let demonstration: UpProcess;
  beforeAll(async () => void (demonstration = await startUp()));
  afterAll(() => demonstration[Symbol.asyncDispose]());

  test.each(rows(embeddingFields))("an embeddings request's %s is treated as it is told", async (name, treatment) => {
    const { baseUrl: baseURL, key: apiKey } = demonstration.endpoint;
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
    const value = name === "model" ? "scripted:embed" : treatment.value;
    const asked = { model: "scripted:embed", input: "Hello", [name]: value };
    const response = await client.post("/embeddings", { body: asked }).asResponse();
    expect(response.headers.get("x-trunkline-ignored")).toBe(treatment.as === "ignored" ? name : null);
    const { data } = (await response.json()) as { data: { embedding: number[] }[] };
    expect(data[0]?.embedding).toHaveLength(name === "dimensions" ? embeddingFields.dimensions.value : 64);
  });
});
