import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { until } from "../harness/until.ts";
import { findPythonSdk } from "./find-python-sdk.ts";
import { callTwice, cities, failBefore, failInTheMiddle, sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";

const run = promisify(execFile);
const sdk = await findPythonSdk("anthropic");
const program = join(import.meta.dirname, "anthropic_python.py");

const oslo = { city: "Oslo", degrees: 7 };

/** Answers of the model to each question of the program. */
const answers: Readonly<Record<string, (chat: FakeOpenAiChat, asked: number) => void>> = {
  tools: callTwice,
  object: (chat) => {
    chat.say(JSON.stringify(oslo));
    chat.done();
  },
  thoughts: (chat) => {
    chat.think("Hm.");
    sayHello(chat);
  },
  failing: failBefore,
  "failing once": (chat, asked) => (asked === 1 ? failBefore(chat) : sayHello(chat)),
  "failing in the middle": failInTheMiddle,
  "silence after a word": (chat) => chat.say("Hello "),
};

describe.skipIf("missing" in sdk)("Anthropic's Python SDK, changed in nothing but base URL and key,", () => {
  let staged: StagedVllm;
  let got: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    if ("missing" in sdk) return;
    staged = await startStagedVllm();
    staged.answers((chat) => {
      const question = questionOf(chat.request.body);
      (answers[question] ?? sayHello)(chat, askedOf(question).length);
    });
    const env = {
      ...process.env,
      PYTHONPATH: sdk.path,
      ANTHROPIC_BASE_URL: new URL(staged.up.endpoint.baseUrl).origin,
      ANTHROPIC_API_KEY: staged.up.endpoint.key,
      CHAT_MODEL: staged.model,
    };
    const { stdout } = await run(sdk.python, [program], { env, timeout: 40_000 });
    got = JSON.parse(stdout) as Record<string, unknown>;
  });
  afterAll(() => staged?.[Symbol.asyncDispose]());
  const askedOf = (question: string) => staged.vllm.chats.filter(({ body }) => questionOf(body) === question);

  test("lists the models, and finds one by an id with a slash and a colon", () => {
    expect([got["models"], got["one_model"]]).toEqual([[[staged.model, "model"]], staged.model]);
  });

  test("gets messages, whole and streamed, with either header for its key", () => {
    expect(got["whole"]).toEqual(["Hello there.", "end_turn", 3]);
    expect(got["streamed"]).toEqual(["Hello there.", "Hello there.", "end_turn", 3]);
    expect(got["events"]).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(got["bearer"]).toBe("Hello there.");
  });

  test("runs its tools to the end of the loop, by hand and by its own runner", () => {
    expect(got["tools_to_the_end"]).toEqual(["tool_use", ["call_Oslo", "call_Rome"], "Hello there."]);
    expect(got["tools_streamed"]).toEqual(cities.map((city) => [`call_${city}`, "get_weather", { city }]));
    expect(got["tools_by_the_runner"]).toEqual([cities, "Hello there."]);
    expect(got["tool_choices"]).toBe("asked");
    const choices = askedOf("text").flatMap(({ body }) => body["tool_choice"] ?? []);
    expect(choices).toEqual(["none", "auto", "required", { type: "function", function: { name: "get_weather" } }]);
  });

  test("parses structured output, shows images and hears thoughts", () => {
    expect(got["parsed"]).toEqual(oslo);
    expect(got["vision"]).toBe("Hello there.");
    expect(got["thoughts"]).toEqual([["thinking", "text"], "Hm.", "Hm."]);
    const sentBack = askedOf("text").flatMap(
      ({ body }) => (body as { messages: { reasoning_content?: string }[] }).messages,
    );
    expect(sentBack.flatMap(({ reasoning_content: thought }) => thought ?? [])).toEqual(["Hm."]);
  });

  test("counts tokens, and hears what is ignored", () => {
    expect([got["counted"], got["ignored"]]).toEqual([true, "metadata"]);
  });

  test("throws each class of error with what it says", () => {
    const invalid = { as: "BadRequestError", type: "invalid_request_error", status: 400, request: "req_" };
    expect(got["errors"]).toEqual({
      range: { ...invalid, code: "integer_below_min_value" },
      block: { ...invalid, code: "invalid_value" },
      key: {
        as: "AuthenticationError",
        type: "authentication_error",
        code: "key_invalid",
        status: 401,
        request: "req_",
      },
      model: { as: "NotFoundError", type: "not_found_error", code: "model_not_found", status: 404, request: "req_" },
      url: { as: "NotFoundError", type: "not_found_error", code: "unknown_url", status: 404, request: "req_" },
      runtime: { as: "InternalServerError", type: "api_error", code: "upstream_error", status: 502, request: "req_" },
      nobody: { as: "APIConnectionError" },
      stream: expect.objectContaining({ type: "api_error", code: "upstream_error" }),
    });
  });

  test("retries by itself what may go better the next time", () => {
    expect(got["retried"]).toBe("Hello there.");
    expect(askedOf("failing once")).toHaveLength(2);
  });

  test("stops the runtime when it leaves", async () => {
    expect(got["left_by_closing"]).toBe("left");
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop" });
    expect(askedOf("silence after a word")).toMatchObject([{ closedEarly: true }]);
  });
});

function questionOf(body: Readonly<Record<string, unknown>>): string {
  const { messages } = body as { messages: { role: string; content: unknown }[] };
  const content = messages.findLast(({ role }) => role === "user")?.content;
  return typeof content === "string" ? content : "";
}
