import { expect, test } from "vitest";
import { faultOf, hello, readChat, thrownBy, weather } from "./chat-requests.ts";

const named = (name: string) => ({ type: "function", function: { name } });
const allowing = (...names: string[]) => ({
  tools: [weather],
  tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: names.map(named) } },
});

test.each<[string, string, Record<string, unknown>]>([
  ["functions", "unsupported_parameter", { functions: [{ name: "f" }] }],
  ["function_call", "unsupported_parameter", { function_call: "auto" }],
  ["audio", "unsupported_parameter", { audio: { voice: "alloy", format: "mp3" } }],
  ["modalities", "unsupported_value", { modalities: ["text", "audio"] }],
  ["web_search_options", "unsupported_parameter", { web_search_options: {} }],
  ["moderation", "unsupported_parameter", { moderation: { model: "m" } }],
  ["verbosity", "unsupported_value", { verbosity: "high" }],
  ["messages[1].audio", "unsupported_parameter", { messages: [hello, { role: "assistant", audio: { id: "a" } }] }],
  [
    "messages[0].function_call",
    "unsupported_parameter",
    { messages: [{ role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } }] },
  ],
  ["tools[0].type", "invalid_value", { tools: [{ type: "web_search" }] }],
  ["messages[0].role", "invalid_value", { messages: [{ role: "function", name: "f", content: "7" }] }],
  [
    "messages[0].content[0].type",
    "invalid_value",
    { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }] }] },
  ],
  ["tool_choice.allowed_tools.tools[1].function.name", "invalid_value", allowing("weather", "other")],
  ["tool_choice.allowed_tools.tools", "empty_array", allowing()],
])("a chat request for '%s' is refused by its name", (param, code, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
  expect(thrownBy(fields).message).toContain(`'${param}'`);
});

test.each(["functions", "audio", "modalities", "web_search_options", "verbosity", "moderation", "user", "metadata"])(
  "a chat request with a null for '%s' is one without it",
  (field) => {
    expect(readChat({ [field]: null })).toEqual(readChat());
  },
);
