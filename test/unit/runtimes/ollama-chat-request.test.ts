import { expect, test } from "vitest";
import type { Fault } from "#shared/fault/fault.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { ollamaChatRequest } from "../../../services/agent/runtimes/ollama/ollama-request.ts";
import { ollamaShow } from "../../../services/agent/runtimes/ollama/ollama-catalogue.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

const everything = ["completion", "vision", "tools", "thinking"];
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

/** The request as Ollama reads it: what is undefined does not exist in JSON. */
function requestFor(
  fields: Record<string, unknown>,
  model: { capabilities?: string[]; format?: string; family?: string } = {},
) {
  const { capabilities = everything, format = "gguf", family = "qwen3" } = model;
  const show = ollamaShow.parse({ capabilities, details: { format, family } });
  const entry = { name: "m:latest", show, loaded: true };
  const body = chatBody.parse({ messages: [{ role: "user", content: "Hello" }], ...fields });
  return JSON.parse(JSON.stringify(ollamaChatRequest(entry, { capabilities: show.capabilities, body })));
}

const refusalOf = (...request: Parameters<typeof requestFor>): Fault => faultThrownBy(() => requestFor(...request));

test("a chat for Ollama has Ollama's own name for the model, and never lets it forget messages in silence", () => {
  expect(requestFor({})).toEqual({
    model: "m:latest",
    stream: true,
    truncate: false,
    messages: [{ role: "user", content: "Hello" }],
    options: {},
  });
});

test("a chat for Ollama carries the settings as Ollama's options", () => {
  const same = { temperature: 0, top_p: 0.5, frequency_penalty: 1, presence_penalty: -1, seed: 7, stop: ["x"] };
  expect(requestFor({ ...same, max_tokens: 50 }).options).toEqual({ ...same, num_predict: 50 });
});

test("a chat for Ollama asks for probabilities where they are wanted", () => {
  expect(requestFor({ logprobs: true, top_logprobs: 3 })).toMatchObject({ logprobs: true, top_logprobs: 3 });
  expect(requestFor({ logprobs: false })).not.toHaveProperty("logprobs");
});

test("a chat for Ollama carries a conversation with images, thoughts and tools", () => {
  const url = "data:image/jpg;base64,iVBORw0=";
  const call = { id: "call_1", type: "function", function: { name: "look", arguments: '{"at":"it"}' } };
  const idle = { id: "call_2", type: "function", function: { name: "wait", arguments: "" } };
  const messages = [
    {
      role: "system",
      content: [
        { type: "text", text: "Be " },
        { type: "text", text: "kind." },
      ],
    },
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?" },
        { type: "image_url", image_url: { url } },
      ],
    },
    { role: "assistant", content: null, reasoning_content: "Hm.", tool_calls: [call, idle] },
    { role: "tool", content: ["A ", "cat."].map((text) => ({ type: "text", text })), tool_call_id: "call_1" },
    { role: "tool", content: "Done.", tool_call_id: "unknown" },
  ];
  expect(requestFor({ messages, tools }).messages).toEqual([
    { role: "system", content: "Be kind." },
    { role: "user", content: "What is it?", images: ["iVBORw0="] },
    {
      role: "assistant",
      content: "",
      thinking: "Hm.",
      tool_calls: [
        { id: "call_1", function: { name: "look", arguments: { at: "it" } } },
        { id: "call_2", function: { name: "wait", arguments: {} } },
      ],
    },
    { role: "tool", content: "A cat.", tool_call_id: "call_1", tool_name: "look" },
    { role: "tool", content: "Done.", tool_call_id: "unknown" },
  ]);
});

test("the image of a tool's result follows the result, and a wrong type is refused where it stands", () => {
  const shot = (type: string) => [{ type: "image_url", image_url: { url: `data:image/${type};base64,R0` } }];
  const messages = (type: string) => [...called("{}"), { role: "tool", tool_call_id: "c", content: shot(type) }];
  expect(requestFor({ messages: messages("png") }).messages.slice(1)).toEqual([
    expect.objectContaining({ role: "tool", tool_call_id: "c" }),
    { role: "user", content: "The result of 'look':", images: ["R0"] },
  ]);
  expect(refusalOf({ messages: messages("gif") })).toMatchObject({
    code: "invalid_value",
    param: "messages[1].content[0].image_url.url",
  });
});

test("a chat for Ollama offers tools as they are, and none when none may be called", () => {
  expect(requestFor({ tools, tool_choice: "auto" }).tools).toEqual(tools);
  expect(requestFor({ tools, tool_choice: "none" })).not.toHaveProperty("tools");
});

test.each([
  [{ type: "json_object" }, "json"],
  [{ type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } }, { type: "object" }],
  [{ type: "text" }, undefined],
])("a chat for Ollama asks for the format of %j", (wanted, format) => {
  expect(requestFor({ response_format: wanted }).format).toEqual(format);
});

test.each([
  ["none", false],
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "max"],
  ["max", "max"],
])("a chat for Ollama thinks with the effort %s", (effort, think) => {
  expect(requestFor({ reasoning_effort: effort }).think).toBe(think);
});

test.each([
  ["minimal", "low"],
  ["medium", "medium"],
  ["xhigh", "high"],
  ["max", "high"],
])("a chat for Ollama asks gpt-oss, which knows three efforts, for %s", (effort, think) => {
  expect(requestFor({ reasoning_effort: effort }, { family: "gptoss" }).think).toBe(think);
});

test("a chat for Ollama asks a model that cannot think for no thoughts, and says nothing about it", () => {
  expect(requestFor({ reasoning_effort: "none" }, { capabilities: ["completion"] })).not.toHaveProperty("think");
});

function image(url: string) {
  return [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
}
function called(text: string) {
  const calls = [{ id: "c", type: "function", function: { name: "look", arguments: text } }];
  return [{ role: "assistant", tool_calls: calls }];
}
const imagePath = "messages[0].content[0].image_url.url";
const argumentsPath = "messages[0].tool_calls[0].function.arguments";

test.each([
  ["an image of another type", { messages: image("data:image/gif;base64,R0") }, {}, "invalid_value", imagePath],
  ["arguments that are no object", { messages: called("[1]") }, {}, "invalid_value", argumentsPath],
  ["arguments that are not JSON", { messages: called("{") }, {}, "invalid_value", argumentsPath],
  ["a call that must be made", { tools, tool_choice: "required" }, {}, "unsupported_value", "tool_choice"],
  [
    "a call of one function",
    { tools, tool_choice: { type: "function", function: { name: "look" } } },
    {},
    "unsupported_value",
    "tool_choice",
  ],
  [
    "no thoughts of gpt-oss",
    { reasoning_effort: "none" },
    { family: "gptoss" },
    "unsupported_value",
    "reasoning_effort",
  ],
  ["several answers", { n: 2 }, {}, "unsupported_parameter", "n"],
  ["probabilities on MLX", { logprobs: true }, { format: "safetensors" }, "unsupported_parameter", "logprobs"],
  [
    "a format on MLX",
    { response_format: { type: "json_object" } },
    { format: "safetensors" },
    "unsupported_parameter",
    "response_format",
  ],
  ["stop strings on MLX", { stop: ["x"] }, { format: "safetensors" }, "unsupported_parameter", "stop"],
])("what Ollama would drop or misread is refused: %s", (_, fields, model, code, param) => {
  expect(refusalOf(fields, model)).toMatchObject({ code, param });
});
