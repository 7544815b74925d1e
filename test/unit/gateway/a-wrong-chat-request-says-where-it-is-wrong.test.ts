import { expect, test } from "vitest";
import { messagesMax } from "../../../services/gateway/chats/read-chat.ts";
import { faultOf, hello, picture, readChat, thrownBy, weather } from "./chat-requests.ts";

type Case = [code: string, param: string, fields: Record<string, unknown>];
const user = (content: unknown) => ({ messages: [hello, { role: "user", content }] });
const named = (name: string) => ({ type: "function", function: { name } });
const image = (url: string) => ({ ...picture, image_url: { url } });
const allowing = (...names: string[]) => ({
  tools: [weather],
  tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: names.map(named) } },
});
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
  ["invalid_value", "max_tokens", { max_tokens: 7, max_completion_tokens: 8 }],
  ["invalid_value", "stream_options", { stream_options: { include_usage: true } }],
  ["invalid_value", "top_logprobs", { top_logprobs: 3 }],
  ["invalid_value", "tool_choice", { tool_choice: "required" }],
  ["invalid_value", "tool_choice", { tool_choice: named("weather") }],
  ["invalid_value", "tool_choice.function.name", { tools: [weather], tool_choice: named("x") }],
  ["unsupported_parameter", "functions", { functions: [{ name: "f" }] }],
  ["unsupported_parameter", "function_call", { function_call: "auto" }],
  ["unsupported_parameter", "audio", { audio: { voice: "alloy", format: "mp3" } }],
  ["unsupported_value", "modalities", { modalities: ["text", "audio"] }],
  ["unsupported_parameter", "web_search_options", { web_search_options: {} }],
  ["unsupported_parameter", "moderation", { moderation: { model: "m" } }],
  ["unsupported_value", "verbosity", { verbosity: "high" }],
  ["unsupported_parameter", "messages[0].audio", { messages: [{ role: "assistant", audio: { id: "a" } }] }],
  ["unsupported_parameter", "messages[0].function_call", { messages: [{ role: "assistant", function_call: {} }] }],
  ["invalid_value", "tools[0].type", { tools: [{ type: "web_search" }] }],
  ["invalid_value", "messages[0].role", { messages: [{ role: "function", name: "f", content: "7" }] }],
  ["invalid_value", "tool_choice.allowed_tools.tools[1].function.name", allowing("weather", "other")],
  ["empty_array", "tool_choice.allowed_tools.tools", allowing()],
])("a wrong chat request is told %s at %s: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
  expect(thrownBy(fields).message).toContain(`'${param}'`);
});

test.each(["http://10.0.0.7/a.png", "data:text/html;base64,AA=="])(
  "a wrong chat request is told where its image is wrong: %s",
  (url) => {
    const param = "messages[1].content[1].image_url.url";
    expect(faultOf(user([picture, image(url)]))).toEqual({ code: "invalid_value", param });
  },
);

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

const call = (id: string) => ({ id, type: "function", function: { name: "weather", arguments: "{}" } });
const asks = (...ids: string[]) => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
const answers = (id: string) => ({ role: "tool", tool_call_id: id, content: "12 °C" });
const goesOn = { role: "assistant", content: "It is 12 °C." };

test.each([
  ["one call and its answer", [hello, asks("a"), answers("a")]],
  ["several calls, answered in any order", [hello, asks("a", "b"), answers("b"), answers("a"), goesOn, hello]],
  ["a call for each of two questions", [asks("a"), answers("a"), goesOn, hello, asks("a"), answers("a")]],
  ["an answer that comes twice", [hello, asks("a"), answers("a"), answers("a")]],
  ["a call after another without words between", [asks("a"), answers("a"), asks("b"), answers("b")]],
])("messages of tools are taken in order: %s", (_, messages) => {
  expect(readChat({ messages }).body.messages).toEqual(messages);
});

test.each([
  ["an answer to nothing", [hello, answers("a")], "messages[1].role"],
  ["an answer at the very beginning", [answers("a"), hello], "messages[0].role"],
  ["an answer to another call", [hello, asks("a"), answers("b")], "messages[2].role"],
  ["an answer after somebody spoke", [asks("a"), answers("a"), hello, answers("a")], "messages[3].role"],
  ["a call that nobody answers", [asks("a"), hello], "messages[1].role"],
  ["a call of two that nobody answers", [asks("a", "b"), answers("a"), goesOn], "messages[2].role"],
  ["a call at the very end", [hello, asks("a")], "messages[1]"],
])("messages of tools are refused out of order: %s", (_, messages, param) => {
  expect(faultOf({ messages })).toEqual({ code: "tool_messages_out_of_order", param });
});

test("messages of tools are refused when nobody could tell which of two calls is answered", () => {
  const messages = [hello, asks("a", "a"), answers("a")];
  expect(faultOf({ messages })).toEqual({ code: "invalid_value", param: "messages[1].tool_calls" });
});

test("messages of tools are told which calls have no answer, but not all of very many", () => {
  const ids = Array.from({ length: 40 }, (_, at) => `call_${at}`);
  const { message } = thrownBy({ messages: [asks(...ids), ...ids.slice(0, 3).map(answers), hello] });
  expect(message).toContain("'call_3', 'call_4', 'call_5', 'call_6', 'call_7' and 32 more.");
});
