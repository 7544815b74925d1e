import { expect, test } from "vitest";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { repeatedCharactersMax } from "../../../services/gateway/apis/responses/response-tools.ts";
import { called, faultOf, gave, readResponse, thrownBy, weather } from "./response-requests.ts";

const hello = { role: "user", content: "Hello" };
const call = (id: string) => ({ id, type: "function", function: { name: "weather", arguments: "{}" } });
const thought = (text: string) => ({ type: "reasoning", summary: [], content: [{ type: "reasoning_text", text }] });
const said = (text: string) => ({ type: "message", role: "assistant", content: [{ type: "output_text", text }] });
const pixel = "data:image/png;base64,iVBORw0KGgo=";
const home = (name: string) => ({ type: "namespace", name: "home", description: "", tools: [{ ...weather, name }] });
const messagesOf = (input: unknown, fields: object = {}): unknown => readResponse({ input, ...fields }).body.messages;

test("a request of the Responses API is handed on with everything that changes the answer, in the one form that agents take", () => {
  const { body, ignored } = readResponse({
    instructions: "Be kind.",
    max_output_tokens: 9,
    temperature: 0.5,
    top_p: 0.5,
    top_logprobs: 2,
    include: ["message.output_text.logprobs"],
    parallel_tool_calls: false,
    tools: [{ ...weather, description: "The weather", strict: true }],
    tool_choice: { type: "function", name: "weather" },
    reasoning: { effort: "low" },
    text: { format: { type: "json_schema", name: "any", schema: { type: "object" }, strict: true } },
  });
  expect(body).toEqual({
    messages: [{ role: "system", content: "Be kind." }, hello],
    max_tokens: 9,
    temperature: 0.5,
    top_p: 0.5,
    logprobs: true,
    top_logprobs: 2,
    parallel_tool_calls: false,
    tools: [
      {
        type: "function",
        function: { name: "weather", description: "The weather", parameters: { type: "object" }, strict: true },
      },
    ],
    tool_choice: { type: "function", function: { name: "weather" } },
    reasoning_effort: "low",
    response_format: { type: "json_schema", json_schema: { name: "any", schema: { type: "object" }, strict: true } },
  });
  expect(ignored).toEqual([]);
  expect(chatBody.safeParse(body).success).toBe(true);
});

test("a request of the Responses API gives only the tools that may be called", () => {
  const tools = [weather, { ...weather, name: "time" }];
  const allowed = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "time" }] };
  const { body } = readResponse({ tools, tool_choice: allowed });
  expect([body.tools?.map((tool) => tool.function.name), body.tool_choice]).toEqual([["time"], "required"]);
});

test("a request of the Responses API gives functions of a namespace by both of their names, and takes calls of them so", () => {
  const input = [hello, { ...called("a"), namespace: "home", name: "open" }, gave("a")];
  const { body, ignored, form } = readResponse({ tools: [weather, home("open")], input });
  expect(body.tools?.map((tool) => tool.function.name)).toEqual(["weather", "home__open"]);
  expect(body.messages[1]).toMatchObject({ tool_calls: [{ function: { name: "home__open" } }] });
  expect([...form.terms.called]).toEqual([
    ["weather", { is: "function", name: "weather" }],
    ["home__open", { is: "function", namespace: "home", name: "open" }],
  ]);
  expect(ignored).toEqual([]);
});

test("a request of the Responses API tells with each function of a namespace what all of them are for", () => {
  const both = [weather, { ...weather, name: "open", description: "A door." }];
  const { body } = readResponse({ tools: [{ ...home("open"), description: "Of the house.", tools: both }] });
  expect(body.tools?.map((tool) => tool.function.description)).toEqual(["Of the house.", "Of the house.\n\nA door."]);
});

test("a request of the Responses API may choose a function of a namespace by its own name, where no other has it", () => {
  const chooses = (name: string) =>
    readResponse({ tools: [weather, home("open")], tool_choice: { type: "function", name } }).body.tool_choice;
  const chosen = (name: string) => ({ type: "function", function: { name } });
  expect([chooses("open"), chooses("home__open"), chooses("weather")]).toEqual([
    chosen("home__open"),
    chosen("home__open"),
    chosen("weather"),
  ]);
  const twice = [home("open"), { ...home("open"), name: "car" }];
  expect(faultOf({ tools: twice, tool_choice: { type: "function", name: "open" } })).toEqual({
    code: "invalid_value",
    param: "tool_choice.name",
  });
});

test("a request of the Responses API leaves a search of the web out, and says so", () => {
  const tools = [{ type: "web_search", external_web_access: true }, weather];
  const { body, ignored, form } = readResponse({ tools });
  expect([body.tools?.length, ignored]).toEqual([1, ["tools[0]"]]);
  expect(form.terms.repeated).not.toContain("web_search");
  const alone = readResponse({ tools: [{ type: "web_search_preview" }], tool_choice: "auto" });
  expect(Object.keys(alone.body)).toEqual(["messages"]);
});

test("a request of the Responses API names what it wishes for and nothing here gives, and nothing else", () => {
  const { ignored } = readResponse({
    store: true,
    truncation: "auto",
    include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
    reasoning: { effort: "low", summary: "concise" },
    user: "ann",
    input: [{ ...hello, phase: "commentary" }],
  });
  expect(ignored.toSorted()).toEqual(
    ["include[0]", "input[0].phase", "reasoning.summary", "store", "truncation", "user"].toSorted(),
  );
  expect(readResponse({ store: false, truncation: "disabled", reasoning: { summary: "auto" } }).ignored).toEqual([]);
});

test("the items of a response request are messages, with or without saying so, a developer's as the system's", () => {
  const input = [
    { role: "developer", content: "Be brief." },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] },
    { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
    { role: "user", content: [1, 2].map((at) => ({ type: "input_text", text: `${at}` })) },
  ];
  expect(messagesOf(input)).toEqual([
    { role: "system", content: "Be brief." },
    hello,
    { role: "assistant", content: "No." },
    { role: "user", content: [1, 2].map((at) => ({ type: "text", text: `${at}` })) },
  ]);
});

test("items of the model in a row are one turn, whatever order its thoughts, texts and calls are in", () => {
  const turn = [thought("Hm."), called("a"), said("Let me see."), thought("So."), called("b"), said("Wait.")];
  expect(messagesOf([hello, ...turn, gave("b"), gave("a"), said("12 °C.")])).toEqual([
    hello,
    {
      role: "assistant",
      content: "Let me see.\n\nWait.",
      reasoning_content: "Hm.\n\nSo.",
      tool_calls: [call("a"), call("b")],
    },
    { role: "tool", tool_call_id: "b", content: "12 °C" },
    { role: "tool", tool_call_id: "a", content: "12 °C" },
    { role: "assistant", content: "12 °C." },
  ]);
});

test("items without content are no turn", () => {
  const locked = { type: "reasoning", summary: [], encrypted_content: "gAAAA" };
  expect(messagesOf([hello, locked, hello])).toEqual([hello, hello]);
  expect(readResponse({ input: [hello, locked] }).ignored).toEqual(["input[1].encrypted_content"]);
});

test("the items of a response request that tell their thoughts in short only are read so", () => {
  const short = { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
  expect(messagesOf([hello, short, said("Well.")])).toEqual([
    hello,
    { role: "assistant", content: "Well.", reasoning_content: "Hm." },
  ]);
});

test("the items of a response request show images that were sent, as closely as a runtime can look", () => {
  const image = { type: "input_image", image_url: pixel, detail: "original", file_id: null };
  const { body, imageParam, ignored } = readResponse({
    input: [hello, { role: "user", content: [{ type: "input_text", text: "And this?" }, image] }],
  });
  expect([imageParam, ignored]).toEqual(["input[1].content[1]", []]);
  expect(body.messages[1]?.content).toEqual([
    { type: "text", text: "And this?" },
    { type: "image_url", image_url: { url: pixel, detail: "high" } },
  ]);
});

test("a function's output may have images", () => {
  const image = { type: "input_image", image_url: pixel };
  const { body, imageParam } = readResponse({ input: [hello, called("a"), { ...gave("a"), output: [image] }] });
  expect(imageParam).toBe("input[2].output[0]");
  expect(body.messages[2]).toEqual({
    role: "tool",
    tool_call_id: "a",
    content: [{ type: "image_url", image_url: { url: pixel } }],
  });
});

test("the items of a response request may be sent back as an answer had them", () => {
  const asAnswered = { id: "x_1", status: "completed" };
  const text = { type: "output_text", text: "Hi.", annotations: [], logprobs: [] };
  const input = [
    { ...thought("Hm."), ...asAnswered, encrypted_content: null },
    { type: "message", role: "assistant", content: [text], ...asAnswered },
    { ...called("a"), ...asAnswered },
    { ...gave("a"), ...asAnswered, output: [{ type: "input_text", text: "12 °C" }] },
  ];
  expect(readResponse({ input }).ignored).toEqual([]);
});

const image = (url: string) => ({ type: "input_image", image_url: url });
const user = (part: object) => ({ role: "user", content: [part] });
const functions = (count: number) => Array.from({ length: count }, (_each, at) => ({ ...weather, name: `f${at}` }));
const choosing = (name: string) => ({ tools: [weather], tool_choice: { type: "function", name } });
const allowing = (name: string) => ({
  tools: [weather],
  tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name }] },
});
const long = "x".repeat(100_000);
const schema = { type: "json_schema", name: "any", schema: { a: long.repeat(3) } };
const notes = Object.fromEntries(functions(17).map(({ name }) => [name, name]));
test.each<[code: string, param: string, fields: Record<string, unknown>]>([
  ["missing_required_parameter", "model", { model: undefined }],
  ["missing_required_parameter", "input", { input: undefined }],
  ["empty_array", "input", { input: [] }],
  ["unsupported_value", "input[1].type", { input: [hello, { type: "item_reference", id: "a" }] }],
  ["invalid_value", "input[0].content[0].type", { input: [user({ type: "input_file", file_id: "a" })] }],
  ["invalid_value", "input[0].content[0].image_url", { input: [user(image("http://example.com/a.png"))] }],
  ["invalid_value", "input[1].content[0]", { input: [hello, { role: "assistant", content: [image(pixel)] }] }],
  ["invalid_value", "tools[1].type", { tools: [weather, { type: "file_search" }] }],
  ["invalid_value", "tool_choice", { tools: [{ type: "web_search" }], tool_choice: "required" }],
  ["string_too_long", "tools[1].tools[0].name", { tools: [weather, home("a".repeat(257))] }],
  ["invalid_value", "tools[1].tools[0].name", { tools: [{ ...weather, name: "home__open" }, home("open")] }],
  ["invalid_value", "tool_choice", { tool_choice: "required" }],
  ["invalid_value", "tool_choice.name", choosing("time")],
  ["invalid_value", "tool_choice.tools[0].name", allowing("time")],
  ["invalid_value", "top_logprobs", { top_logprobs: 2 }],
  ["invalid_value", "input", { input: [{ type: "reasoning", summary: [] }] }],
  ["unsupported_parameter", "max_tokens", { max_tokens: 3 }],
  ["unsupported_value", "n", { n: 2 }],
  ["array_above_max_length", "tools", { tools: [weather, { ...home("a"), tools: functions(512) }] }],
  // Each function of a namespace repeats its description.
  ["string_too_long", "tools[0].description", { tools: [{ ...home("a"), description: long, tools: functions(6) }] }],
  ["invalid_value", "stream_options", { stream_options: {} }],
  ["unsupported_parameter", "previous_response_id", { previous_response_id: "resp_1" }],
  ["unsupported_parameter", "conversation", { conversation: "conv_1" }],
  ["unsupported_parameter", "prompt", { prompt: { id: "pmpt_1" } }],
  ["unsupported_value", "background", { background: true }],
  ["unsupported_value", "text.verbosity", { text: { verbosity: "high" } }],
  ["invalid_value", "metadata", { metadata: notes }],
  ["tool_messages_out_of_order", "input[1].call_id", { input: [hello, gave("a")] }],
  ["tool_messages_out_of_order", "input[1]", { input: [called("a"), hello] }],
  ["tool_messages_out_of_order", "input[1]", { input: [hello, said("Well."), called("a")] }],
  ["invalid_value", "input[0]", { input: [called("a"), called("a"), gave("a")] }],
  ["string_too_long", "text.format.schema", { text: { format: schema } }],
])("a refusal of a response names its code %s and the place of the fault %s", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});

test("a refusal names the place of the fault: parts that a response would repeat without end", () => {
  const instructions = "a".repeat(repeatedCharactersMax);
  expect(faultOf({ instructions })).toEqual({ code: "string_too_long", param: "instructions" });
  expect(thrownBy({ instructions }).message).toContain("repeatedCharactersMax");
  expect(readResponse({ input: instructions }).ignored).toEqual([]);
  const tools = Array.from({ length: 8 }, () => ({ ...weather, description: "a".repeat(repeatedCharactersMax / 8) }));
  expect(faultOf({ tools })).toEqual({ code: "string_too_long", param: "tools" });
  const half = '"'.repeat(190_000);
  const format = { type: "json_schema", name: "any", schema: { a: half.slice(0, 100_000) } };
  expect(faultOf({ instructions: half, text: { format } })).toEqual({ code: "string_too_long", param: "instructions" });
});

test("an item of a type that is none is told those that there are, and no others", () => {
  const { message } = thrownBy({ input: [{ type: "robot" }] });
  expect(message).toContain(
    "supported are 'message', 'reasoning', 'function_call', 'custom_tool_call', 'function_call_output', 'custom_tool_call_output'.",
  );
});
