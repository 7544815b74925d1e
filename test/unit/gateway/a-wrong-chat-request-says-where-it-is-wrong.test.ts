import { expect, test } from "vitest";
import { messagesMax } from "../../../services/gateway/chats/read-chat.ts";
import { faultOf, hello, picture, thrownBy, weather } from "./chat-requests.ts";

type Case = [code: string, param: string, fields: Record<string, unknown>];
const user = (content: unknown) => ({ messages: [hello, { role: "user", content }] });
const tool = (fields: Record<string, unknown>) => ({ tools: [weather, { type: "function", function: fields }] });

test.each<Case>([
  ["missing_required_parameter", "model", { model: undefined }],
  ["missing_required_parameter", "messages[0].role", { messages: [{ content: "Hi" }] }],
  ["missing_required_parameter", "messages[1].content[0].type", user([{ text: "Hi" }])],
  ["missing_required_parameter", "messages[1].content[0].image_url", user([{ type: "image_url" }])],
  ["missing_required_parameter", "messages[0].tool_call_id", { messages: [{ role: "tool", content: "x" }] }],
  ["missing_required_parameter", "tools[1].function.name", tool({})],
  ["missing_required_parameter", "response_format.json_schema", { response_format: { type: "json_schema" } }],
  ["invalid_type", "model", { model: 7 }],
  ["invalid_type", "messages[1].content", user(7)],
  ["invalid_type", "stream", { stream: "true" }],
  ["invalid_type", "max_tokens", { max_tokens: 1.5 }],
  ["invalid_type", "temperature", { temperature: "hot" }],
  ["invalid_type", "stop[1]", { stop: ["a", 7] }],
  ["invalid_type", "logit_bias.50256", { logit_bias: { "50256": "x" } }],
  ["invalid_value", "model", { model: "" }],
  ["invalid_value", "messages[1].content[0].type", user([{ type: "input_audio", input_audio: {} }])],
  ["invalid_value", "tools[0].type", { tools: [{ ...weather, type: "retrieval" }] }],
  ["invalid_value", "response_format.type", { response_format: { type: "yaml" } }],
  ["integer_below_min_value", "max_tokens", { max_tokens: 0 }],
  ["integer_above_max_value", "top_logprobs", { top_logprobs: 21 }],
  ["integer_above_max_value", "seed", { seed: 2 ** 60 }],
  ["decimal_below_min_value", "temperature", { temperature: -1 }],
  ["decimal_above_max_value", "temperature", { temperature: 2.5 }],
  ["decimal_above_max_value", "logit_bias.50256", { logit_bias: { "50256": 101 } }],
  ["string_too_long", "model", { model: "m".repeat(257) }],
  ["empty_array", "messages", { messages: [] }],
  ["array_above_max_length", "messages", { messages: Array(messagesMax + 1).fill(hello) }],
])("a wrong chat request is told %s at %s: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});

test.each<Case>([
  ["invalid_value", "max_tokens", { max_tokens: 7, max_completion_tokens: 8 }],
  ["invalid_value", "stream_options", { stream_options: { include_usage: true } }],
  ["invalid_value", "top_logprobs", { top_logprobs: 3 }],
  ["invalid_value", "tool_choice", { tool_choice: "required" }],
  ["invalid_value", "tool_choice", { tool_choice: { type: "function", function: { name: "weather" } } }],
  [
    "invalid_value",
    "tool_choice.function.name",
    { tools: [weather], tool_choice: { type: "function", function: { name: "x" } } },
  ],
  [
    "invalid_value",
    "messages[1].content[1].image_url.url",
    user([picture, { ...picture, image_url: { url: "http://10.0.0.7/a.png" } }]),
  ],
  [
    "invalid_value",
    "messages[1].content[0].image_url.url",
    user([{ ...picture, image_url: { url: "data:text/html;base64,AA==" } }]),
  ],
])("a wrong chat request is told %s at %s when its fields do not go together: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});

test("a wrong chat request is told of what is wrong first, and not of fields that mean nothing", () => {
  const fields = { unknown: 1, temperature: "hot", messages: [{ ...hello, extra: 1 }] };
  expect(faultOf(fields)).toEqual({ code: "invalid_type", param: "temperature" });
});

test.each<[Record<string, unknown>, string]>([
  [{ model: undefined }, "Missing required parameter: 'model'."],
  [{ max_tokens: 1.5 }, "Invalid type for 'max_tokens': expected an integer, but got a number."],
  [{ reasoning_effort: "much" }, "'none', 'minimal', 'low', 'medium', 'high'"],
  [{ stop: "abcdefghijklmnopq".split("") }, "'stop' must hold at most 16 elements."],
  [{ messages: [{ role: "robot" }] }, "'system', 'developer', 'user', 'assistant', 'tool'"],
])("a wrong chat request is told in words what would be right: %o", (fields, words) => {
  expect(thrownBy(fields).message).toContain(words);
});

test("a wrong chat request is told without a word of what it said", () => {
  const secret = "sk-secret";
  const wrong = [{ messages: secret }, { stop: { [secret]: 1 } }, user([{ type: secret }]), { temperature: secret }];
  for (const fields of wrong) expect(thrownBy(fields).message).not.toContain(secret);
});
