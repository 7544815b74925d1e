import { describe, expect, test } from "vitest";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { startUp } from "../harness/start-trunkline.ts";
import {
  chatOfLogprobs,
  chatOfThoughts,
  chatOfTools,
  chatWhole,
  embeddings,
  embeddingsAsBase64,
  failure,
  failureInResponse,
  failureInStream,
  listed,
  outputOfTools,
  responseOfThoughts,
  streamOfContinuation,
  streamOfLogprobs,
  streamOfResponse,
  streamOfText,
  streamOfThoughts,
  streamOfTools,
  textWhole,
} from "./recorded-answers.ts";
import { likely } from "./staged-answers.ts";
import { stagedOpenAi } from "./staged-openai.ts";

/** What a model says to each question, piece by piece. */
const answers: Readonly<Record<string, (chat: FakeOpenAiChat) => string>> = {
  text: (chat) => {
    chat.say("Hello ");
    chat.say("there.");
    return "stop";
  },
  tools: (chat) => {
    for (const [index, city] of ["Oslo", "Rome"].entries()) {
      const called = { name: "get_weather", arguments: `{"city":"${city}"}` };
      chat.call({ index, id: `call_${city}`, type: "function", function: called });
    }
    return "tool_calls";
  },
  logprobs: (chat) => {
    chat.event({ choices: [{ index: 0, delta: { content: "Hello" }, logprobs: { content: [likely] } }] });
    return "length";
  },
  thoughts: (chat) => {
    chat.think("Hm.");
    chat.say("Hello.");
    return "stop";
  },
};

describe("every answer of today is as it was recorded:", () => {
  const on = stagedOpenAi((chat) => {
    const asked = (chat.request.body["messages"] as { content: string }[]).at(-1);
    const finishReason = answers[asked?.content ?? ""]?.(chat) ?? "stop";
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 3,
      total_tokens: 23,
      prompt_tokens_details: { cached_tokens: 16 },
      completion_tokens_details: { reasoning_tokens: 1 },
    };
    chat.done({ finishReason, usage });
  });

  const ask = (question: string, fields: object = {}) => ({
    model: on.stage.model,
    messages: [{ role: "user" as const, content: question }],
    ...fields,
  });
  const whole = async (question: string, fields: object = {}) => {
    const response = await on.client.chat.completions.create(ask(question, fields)).asResponse();
    return masked(await response.json());
  };
  const events = async (question: string, fields: object = {}) => {
    const asked = { ...ask(question, fields), stream: true as const };
    const response = await on.client.chat.completions.create(asked).asResponse();
    return eventsIn(await response.text());
  };
  const tools = [{ type: "function", function: { name: "get_weather" } }];

  test("a chat is as it was recorded", async () => {
    expect(await whole("text")).toEqual(chatWhole);
    const told = { stream_options: { include_usage: true } };
    expect(await events("text", told)).toEqual([...streamOfText, "[DONE]"]);
  });

  test("a chat that calls tools is as it was recorded", async () => {
    expect(await whole("tools", { tools })).toEqual(chatOfTools);
    expect(await events("tools", { tools })).toEqual([...streamOfTools, "[DONE]"]);
  });

  test("a chat with logprobs is as it was recorded", async () => {
    const fields = { logprobs: true, top_logprobs: 1 };
    expect(await whole("logprobs", fields)).toEqual(chatOfLogprobs);
    expect(await events("logprobs", fields)).toEqual([...streamOfLogprobs, "[DONE]"]);
  });

  test("a chat with thoughts is as it was recorded", async () => {
    expect(await whole("thoughts")).toEqual(chatOfThoughts);
    expect(await events("thoughts")).toEqual([...streamOfThoughts, "[DONE]"]);
  });

  const askResponse = async (input: string, fields: object = {}) => {
    const asked = { model: on.stage.model, input, instructions: "Be kind.", metadata: { team: "blue" }, ...fields };
    return on.client.responses.create(asked).asResponse();
  };

  test("a response with thoughts is as it was recorded", async () => {
    expect(masked(await (await askResponse("thoughts")).json())).toEqual(responseOfThoughts);
    const stream = await askResponse("thoughts", { stream: true });
    expect(eventsIn(await stream.text())).toEqual(streamOfResponse);
  });

  test("a response that calls tools is as it was recorded", async () => {
    const response = await askResponse("tools", { tools: [{ type: "function", name: "get_weather" }] });
    expect(masked(await response.json())).toMatchObject({ output: outputOfTools });
  });

  test("a text that is continued is as it was recorded", async () => {
    on.stage.vllm.onText = (text) => {
      text.say(" upon");
      text.done();
    };
    const asked = { model: on.stage.model, prompt: "Once", logprobs: 1 };
    const response = await on.client.completions.create(asked).asResponse();
    expect(masked(await response.json())).toEqual(textWhole);
    const told = { stream: true as const, stream_options: { include_usage: true } };
    const stream = await on.client.completions.create({ ...asked, ...told }).asResponse();
    expect(eventsIn(await stream.text())).toEqual([...streamOfContinuation, "[DONE]"]);
  });

  test("embeddings, as numbers and as base64, are as they were recorded", async () => {
    await using demonstration = await startUp();
    const { baseUrl, key } = demonstration.endpoint;
    const post = async (fields: object): Promise<unknown> => {
      const body = { model: "scripted:embed", dimensions: 2, ...fields };
      return on.client.withOptions({ baseURL: baseUrl, apiKey: key }).post("/embeddings", { body });
    };
    expect(await post({ input: ["a", "b"] })).toEqual(embeddings);
    expect(await post({ input: "a", encoding_format: "base64" })).toEqual(embeddingsAsBase64);
  });

  test("a model is as it was recorded, alone and in the list", async () => {
    expect(masked(await on.client.models.retrieve(on.stage.model))).toEqual(listed);
    const response = await on.client.get("/models").asResponse();
    expect(masked(await response.json())).toEqual({ object: "list", data: [listed] });
  });

  test("an error is as it was recorded, before an answer and in the middle of it", async () => {
    const { baseUrl, key } = on.stage.up.endpoint;
    const absent = await fetch(`${baseUrl}/models/absent`, { headers: { authorization: `Bearer ${key}` } });
    expect(await absent.json()).toEqual(failure);
    on.stage.answers((chat) => {
      chat.say("Hello ");
      chat.event({ error: { message: "CUDA out of memory", type: "InternalServerError", code: 500 } });
      chat.end();
    });
    expect((await events("text")).at(-1)).toEqual(failureInStream);
    const stream = await askResponse("text", { stream: true });
    expect(eventsIn(await stream.text()).at(-1)).toEqual(failureInResponse);
  });
});

/** The data of all events of a stream. */
function eventsIn(body: string): unknown[] {
  const data = body.split("\n\n").flatMap((event) => /^(?:event: .*\n)?data: ([^\r\n]*)$/.exec(event)?.[1] ?? []);
  return data.map((text) => (text === "[DONE]" ? text : masked(JSON.parse(text))));
}

/** The same value with every id and time masked, and nothing else. */
function masked(value: unknown): unknown {
  const mask = (key: string, inner: unknown): unknown => {
    if (key === "created" || key === "created_at" || key === "completed_at")
      return typeof inner === "number" && Number.isInteger(inner) ? 0 : inner;
    const isId = key === "id" || key === "item_id" || key === "call_id";
    if (isId && typeof inner === "string")
      return inner.replace(/^(chatcmpl-|cmpl-|call_|resp_|rs_|msg_|fc_)\w+$/, "$1…");
    return inner;
  };
  return JSON.parse(JSON.stringify(value, mask));
}
