import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";

let up: UpProcess;
beforeAll(async () => {
  up = await startUp();
});
afterAll(() => up[Symbol.asyncDispose]());

const user = { role: "user", content: "Hello" };
const looking = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] }];
const linking = [{ role: "user", content: [{ type: "image_url", image_url: { url: "http://10.0.0.1/a.png" } }] }];
const tool = { type: "function", function: { name: "look" } };

/** What is wrong, the fields that make it so, and what the caller is told: status, code, param. */
const table: [string, Record<string, unknown>, number, string | null, string | null][] = [
  ["no model", { model: undefined }, 400, "missing_required_parameter", "model"],
  ["a model that is a number", { model: 7 }, 400, "invalid_type", "model"],
  ["no messages", { messages: undefined }, 400, "missing_required_parameter", "messages"],
  ["messages that are text", { messages: "Hello" }, 400, "invalid_type", "messages"],
  ["an empty list of messages", { messages: [] }, 400, "empty_array", "messages"],
  ["a message that is text", { messages: [user, "Hello"] }, 400, "invalid_type", "messages[1]"],
  ["a role that is none", { messages: [{ ...user, role: "robot" }] }, 400, "invalid_value", "messages[0].role"],
  [
    "content that is a number",
    { messages: [user, user, { ...user, content: 7 }] },
    400,
    "invalid_type",
    "messages[2].content",
  ],
  ["no content", { messages: [{ role: "user" }] }, 400, "missing_required_parameter", "messages[0].content"],
  [
    "a part of no known type",
    { messages: [{ ...user, content: [{ type: "video" }] }] },
    400,
    "invalid_value",
    "messages[0].content[0].type",
  ],
  [
    "a part without its text",
    { messages: [{ ...user, content: [{ type: "text" }] }] },
    400,
    "missing_required_parameter",
    "messages[0].content[0].text",
  ],
  [
    "a tool's answer to no call",
    { messages: [user, { role: "tool", content: "7" }] },
    400,
    "missing_required_parameter",
    "messages[1].tool_call_id",
  ],
  ["stream that is text", { stream: "yes" }, 400, "invalid_type", "stream"],
  ["max_tokens 0", { max_tokens: 0 }, 400, "integer_below_min_value", "max_tokens"],
  ["max_tokens that is no whole number", { max_tokens: 1.5 }, 400, "invalid_type", "max_tokens"],
  ["two different limits", { max_tokens: 5, max_completion_tokens: 6 }, 400, "invalid_value", "max_tokens"],
  ["temperature 3", { temperature: 3 }, 400, "decimal_above_max_value", "temperature"],
  ["temperature -0.5", { temperature: -0.5 }, 400, "decimal_below_min_value", "temperature"],
  ["seventeen stops", { stop: "abcdefghijklmnopq".split("") }, 400, "array_above_max_length", "stop"],
  ["n 129", { n: 129 }, 400, "integer_above_max_value", "n"],
  ["n 0", { n: 0 }, 400, "integer_below_min_value", "n"],
  ["logprobs, which this runtime cannot", { logprobs: true }, 400, "unsupported_parameter", "logprobs"],
  [
    "stream_options without stream",
    { stream: false, stream_options: { include_usage: true } },
    400,
    "invalid_value",
    "stream_options",
  ],
  ["tool_choice without tools", { tool_choice: "required" }, 400, "invalid_value", "tool_choice"],
  [
    "a tool without a name",
    { tools: [{ type: "function", function: {} }] },
    400,
    "missing_required_parameter",
    "tools[0].function.name",
  ],
  [
    "tools for a model without",
    { model: "scripted:plain", tools: [tool] },
    400,
    "model_does_not_support_tools",
    "tools",
  ],
  ["an image for a model without", { messages: looking }, 400, "unsupported_value", "messages[0].content[0]"],
  [
    "an image that would have to be fetched",
    { model: "scripted:vision", messages: linking },
    400,
    "invalid_value",
    "messages[0].content[0].image_url.url",
  ],
  ["a chat with an embedding model", { model: "scripted:embed" }, 400, "unsupported_value", "model"],
  ["a model that does not exist", { model: "scripted:absent" }, 404, "model_not_found", "model"],
  ["a model whose name is odd", { model: "a b/../c?d" }, 404, "model_not_found", "model"],
];

describe.each([false, true])("a chat with stream %s", (stream) => {
  test.each(table)("and %s", async (_what, fields, status, code, param) => {
    const response = await up.endpoint.chat({ model: "scripted", messages: [user], stream, ...fields });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("x-request-id")).toMatch(/^req_\w{10,}$/);
    const error = await errorOf(response);
    expect({ status: response.status, ...error }).toEqual({
      status,
      code,
      param,
      type: "invalid_request_error",
      message: expect.any(String),
    });
  });
});
