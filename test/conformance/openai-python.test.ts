import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { findPythonSdk } from "./find-python-sdk.ts";
import { limitedKey } from "./limited-key.ts";
import { callTwice, failBefore, failInTheMiddle, sayHello, sayLikely } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";

const run = promisify(execFile);
const sdk = await findPythonSdk("openai");
const program = join(import.meta.dirname, "openai_python.py");

const oslo = { city: "Oslo", degrees: 7 };

/** Answers of the model to each question of the program. */
const answers: Readonly<Record<string, (chat: FakeOpenAiChat, asked: number) => void>> = {
  tools: callTwice,
  "strict tool": (chat) => {
    const called = { name: "get_weather", arguments: JSON.stringify(oslo) };
    chat.call({ index: 0, id: "call_1", type: "function", function: called });
    chat.done({ finishReason: "tool_calls" });
  },
  object: (chat) => {
    chat.say(JSON.stringify(oslo));
    chat.done();
  },
  thoughts: (chat) => {
    chat.think("Hm.");
    sayHello(chat);
  },
  several: (chat) => {
    chat.say("Other.", 1);
    chat.finish("stop", 1);
    sayHello(chat);
  },
  logprobs: (chat) => sayLikely(chat),
  failing: failBefore,
  "failing once": (chat, asked) => (asked === 1 ? failBefore(chat) : sayHello(chat)),
  "failing in the middle": failInTheMiddle,
  silence: () => {},
  "silence after a word": (chat) => chat.say("Hello "),
};

describe.skipIf("missing" in sdk)("the official Python SDK, changed in nothing but base URL and key,", () => {
  let staged: StagedVllm;
  let got: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    if ("missing" in sdk) return;
    staged = await startStagedVllm();
    staged.answers((chat) => (answers[questionOf(chat.request.body)] ?? sayHello)(chat, timesAsked(chat.request.body)));
    staged.vllm.onText = (text) => {
      for (const word of [" after", ` ${String(text.request.body["prompt"])}`]) text.say(word);
      text.done();
    };
    await using demonstration = await startUp();
    const env = {
      ...process.env,
      PYTHONPATH: sdk.path,
      OPENAI_BASE_URL: staged.up.endpoint.baseUrl,
      OPENAI_API_KEY: staged.up.endpoint.key,
      CHAT_MODEL: staged.model,
      DEMONSTRATION_URL: demonstration.endpoint.baseUrl,
      DEMONSTRATION_KEY: demonstration.endpoint.key,
      NARROW_KEY: await limitedKey(staged.up, "--concurrency", "1"),
      SPENT_KEY: await spentKey(),
    };
    const { stdout } = await run(sdk.python, [program], { env, timeout: 40_000 });
    got = JSON.parse(stdout) as Record<string, unknown>;
  });
  afterAll(() => staged?.[Symbol.asyncDispose]());

  /** A key whose budget for today is gone. */
  async function spentKey(): Promise<string> {
    const key = await limitedKey(staged.up, "--budget", "1/day");
    await staged.up.endpoint.withKey(key).answer({ model: staged.model, says: "Hello" });
    const spent = async () =>
      (await staged.up.endpoint.withKey(key).chat({ model: staged.model, says: "a" })).status === 429;
    await until(spent, { what: "the key's budget to be spent" });
    return key;
  }
  const askedOf = (question: string) => staged.vllm.chats.filter(({ body }) => questionOf(body) === question);
  const timesAsked = (body: Readonly<Record<string, unknown>>): number => askedOf(questionOf(body)).length;

  test("the official Python SDK, changed in nothing but base URL and key, lists the models, and finds one by an id with a slash and a colon", () => {
    expect([got["models"], got["one_model"]]).toEqual([[staged.model], staged.model]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, chats, whole and streamed, with the usage where it belongs", () => {
    expect(got["whole"]).toEqual(["Hello there.", "stop", 3]);
    const nothingBefore = { ids: 1, "usage before": [], "last choices": [], "last usage": 3 };
    expect(got["streamed"]).toEqual({ text: "Hello there.", ...nothingBefore });
    expect(got["roles"]).toBe("Hello there.");
  });

  test("the official Python SDK, changed in nothing but base URL and key, runs its tools to the end of the loop, several at once or one at a time", () => {
    expect(got["tools_to_the_end"]).toEqual(["tool_calls", ["call_Oslo", "call_Rome"], "Hello there."]);
    expect(got["tools_streamed"]).toEqual([
      ["call_Oslo", "get_weather", '{"city":"Oslo"}'],
      ["call_Rome", "get_weather", '{"city":"Rome"}'],
    ]);
    expect(got["one_tool_at_a_time"]).toBe(1);
    expect(got["tool_choices"]).toBe("asked");
    const choices = askedOf("text").flatMap(({ body }) => body["tool_choice"] ?? []);
    expect(choices).toEqual(["none", "auto", "required", { type: "function", function: { name: "get_weather" } }]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, parses structured output by its helpers", () => {
    expect([got["parsed"], got["parsed_of_a_stream"], got["parsed_of_a_tool"]]).toEqual([oslo, oslo, oslo]);
    expect(askedOf("object")[0]?.body["response_format"]).toMatchObject({
      json_schema: { name: "Weather", strict: true },
    });
  });

  test("the official Python SDK, changed in nothing but base URL and key, shows images, hears thoughts, several answers and how likely they were", () => {
    expect(got["vision"]).toBe("Hello there.");
    expect(got["thoughts"]).toEqual(["Hm.", "Hm.", "Hm."]);
    expect(got["several"]).toEqual([
      [0, "Hello there."],
      [1, "Other."],
    ]);
    expect(got["logprobs"]).toEqual([["Hello", -0.5, "Hi"]]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, says how the answer is drawn, and hears what is ignored", () => {
    const drawn = { seed: 7, stop: ["END"], temperature: 0.4, presence_penalty: -0.5, max_tokens: 9 };
    expect(got["drawn"]).toBe("asked");
    expect(askedOf("drawn")[0]?.body).toMatchObject(drawn);
    expect(got["ignored"]).toBe("metadata,user");
  });

  test("the official Python SDK, changed in nothing but base URL and key, gets responses, whole, streamed, parsed and to the end of a loop", () => {
    expect(got["response_whole"]).toEqual(["Hello there.", "completed", 3, [0, 0]]);
    expect(got["response_streamed"]).toEqual(["Hello there.", ["reasoning", "message"], "response.completed"]);
    expect(got["response_parsed"]).toEqual([oslo, oslo]);
    expect(got["response_of_tools_to_the_end"]).toEqual([["call_Oslo", "call_Rome"], "Hello there.", null]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, gets embeddings in the form that it asks for by itself, and as numbers", () => {
    expect(got["embeddings"]).toEqual([8, true, false, true, 32, 3]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, gets texts continued, each as often as it asks", () => {
    const texts = [" after One", " after One", " after Two", " after Two"];
    const echoed = ["One after One", "One after One", "Two after Two", "Two after Two"];
    expect(got["continued"]).toEqual([texts, [" after", " One"], echoed]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, throws each class of error with what the contract says", () => {
    const invalid = { type: "invalid_request_error", request: "req_" };
    const failed = { type: "server_error", param: null };
    expect(got["errors"]).toEqual({
      range: { as: "BadRequestError", status: 400, code: "decimal_above_max_value", param: "temperature", ...invalid },
      audio: { as: "BadRequestError", status: 400, code: "unsupported_value", param: "modalities", ...invalid },
      key: { as: "AuthenticationError", status: 401, code: "key_invalid", param: null, ...invalid },
      model: { as: "NotFoundError", status: 404, code: "model_not_found", param: "model", ...invalid },
      url: { as: "NotFoundError", status: 404, code: "unknown_url", param: null, ...invalid },
      kept: { as: "NotFoundError", status: 404, code: "response_not_found", param: null, ...invalid },
      response: { as: "APIError", code: "upstream_error", ...failed },
      method: { as: "APIStatusError", status: 405, code: "method_not_allowed", param: null, ...invalid },
      runtime: { as: "InternalServerError", status: 502, code: "upstream_error", request: "req_", ...failed },
      time: { as: "APITimeoutError", code: null, type: null, param: null },
      nobody: { as: "APIConnectionError", code: null, type: null, param: null },
      stream: { as: "APIError", code: "upstream_error", ...failed },
    });
  });

  test("the official Python SDK, changed in nothing but base URL and key, does not try again where it is told not to", () => {
    const told = { code: "insufficient_quota", type: "insufficient_quota", param: null, request: "req_" };
    expect(got["not_retried"]).toEqual([{ as: "RateLimitError", status: 429, ...told }, [429]]);
  });

  test("the official Python SDK, changed in nothing but base URL and key, stops the runtime when it leaves, however it does", async () => {
    expect([got["left_by_a_break"], got["left_by_closing"]]).toEqual(["left", "left"]);
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop" });
    const left = [...askedOf("silence"), ...askedOf("silence after a word")];
    expect(left).toMatchObject([1, 2, 3, 4].map(() => ({ closedEarly: true })));
  });

  test("retries by itself what may go better the next time, and waits for as long as it is told", () => {
    expect(got["retried"]).toBe("Hello there.");
    expect(askedOf("failing once")).toHaveLength(2);
    expect(got["retried_after_waiting"]).toEqual(["Hello there.", [429, 200]]);
  });
});

function questionOf(body: Readonly<Record<string, unknown>>): string {
  const { messages } = body as { messages: { role: string; content: unknown }[] };
  const content = messages.findLast(({ role }) => role === "user")?.content;
  return typeof content === "string" ? content : "";
}
