import { expect, test } from "vitest";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { type ReadRequest } from "../../../services/gateway/requests/read-request.ts";
import { readRequest } from "../../harness/read-requests.ts";
import { faultOf, gave, readMessage, thrownBy, used, weather } from "./messages-requests.ts";

const hello = { role: "user", content: "Hello" };
const call = (id: string, args = "{}") => ({ id, type: "function", function: { name: "weather", arguments: args } });
const pixel = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
const pixelUrl = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const text = (words: string) => ({ type: "text", text: words });
const user = (...content: unknown[]) => ({ role: "user", content });
const assistant = (...content: unknown[]) => ({ role: "assistant", content });
const messagesOf = (messages: unknown[], fields: object = {}): unknown =>
  readMessage({ messages, ...fields }).body.messages;

test("a request of the Messages API is handed on with everything that changes the answer", () => {
  const { body, ignored, stream } = readMessage({
    system: "Be kind.",
    stream: true,
    temperature: 0.5,
    top_p: 0.5,
    top_k: 40,
    stop_sequences: ["END"],
    tools: [{ ...weather, type: "custom", strict: true }],
    tool_choice: { type: "tool", name: "weather", disable_parallel_tool_use: true },
    thinking: { type: "adaptive" },
    output_config: { effort: "max", format: { type: "json_schema", schema: { type: "object" } } },
  });
  expect(stream).toBe(true);
  expect(body).toEqual({
    messages: [{ role: "system", content: "Be kind." }, hello],
    max_tokens: 64,
    temperature: 0.5,
    top_p: 0.5,
    top_k: 40,
    stop: ["END"],
    parallel_tool_calls: false,
    tools: [
      {
        type: "function",
        function: { name: "weather", description: "The weather", parameters: { type: "object" }, strict: true },
      },
    ],
    tool_choice: { type: "function", function: { name: "weather" } },
    reasoning_effort: "max",
    response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } },
  });
  expect(ignored).toEqual([]);
  expect(chatBody.safeParse(body).success).toBe(true);
});

test("a request of the Messages API may say null for anything that it does not say", () => {
  const fields = ["system", "stream", "tools", "tool_choice", "thinking", "output_config", "stop_sequences"];
  const nulls = Object.fromEntries([...fields, "metadata", "mcp_servers"].map((field) => [field, null]));
  const content = [{ ...text("Hello"), cache_control: null, citations: null }];
  expect(readMessage({ ...nulls, messages: [{ role: "user", content }] })).toEqual(readMessage());
});

test("a request of the Messages API has unknown fields named, and none of them changes what a machine gets", () => {
  const cache_control = { type: "ephemeral" };
  const { body, ignored } = readMessage({
    system: [{ ...text("Be kind."), cache_control }],
    messages: [user({ ...text("Hello"), cache_control })],
    tools: [{ ...weather, cache_control, eager_input_streaming: true }],
    thinking: { type: "enabled", budget_tokens: 1_024, display: "omitted" },
    metadata: { user_id: "me" },
    context_management: { edits: [] },
    service_tier: "auto",
  });
  expect(body).toMatchObject({ messages: [{ role: "system", content: "Be kind." }, hello] });
  expect(body).not.toHaveProperty("reasoning_effort");
  expect(ignored.toSorted()).toEqual([
    "context_management",
    "messages[0].content[0].cache_control",
    "metadata",
    "service_tier",
    "system[0].cache_control",
    "thinking.budget_tokens",
    "thinking.display",
    "tools[0].cache_control",
    "tools[0].eager_input_streaming",
  ]);
});

test.each([
  [{ thinking: { type: "disabled" }, output_config: { effort: "high" } }, "none", "thinking"],
  [{ thinking: { type: "enabled" }, output_config: { effort: "low" } }, "low", "output_config.effort"],
  [{ output_config: { effort: "xhigh" } }, "xhigh", "output_config.effort"],
  [{ thinking: { type: "adaptive" } }, undefined, undefined],
])("a request of the Messages API with %j asks for the effort %s, which comes from '%s'", (fields, effort, field) => {
  const { body, effort: asked } = readMessage(fields);
  expect([body.reasoning_effort, asked?.field]).toEqual([effort, field]);
});

test.each([
  ["auto", "auto"],
  ["any", "required"],
  ["none", "none"],
])("a request of the Messages API has its tool choice '%s' handed on as '%s'", (type, inner) => {
  const { body } = readMessage({ tools: [weather], tool_choice: { type } });
  expect(body.tool_choice).toBe(inner);
  expect(body).not.toHaveProperty("parallel_tool_calls");
});

test("the conversation of a message request has one message for each result of a tool, before what the user says", () => {
  const question = [
    user(text("Oslo and Rome?")),
    assistant(text("Let me see."), used("a", { city: "Oslo" }), used("b")),
  ];
  expect(messagesOf([...question, user(text("Go on."), gave("a"), gave("b", { is_error: true }))])).toEqual([
    { role: "user", content: "Oslo and Rome?" },
    { role: "assistant", content: "Let me see.", tool_calls: [call("a", '{"city":"Oslo"}'), call("b")] },
    { role: "tool", tool_call_id: "a", content: "12 °C" },
    { role: "tool", tool_call_id: "b", content: "Error: 12 °C" },
    { role: "user", content: "Go on." },
  ]);
});

test.each([
  [undefined, ""],
  [[], ""],
  [[text("a"), text("b")], "ab"],
  [[{ type: "document", title: "T", source: { type: "text", media_type: "text/plain", data: "d" } }], "T\nd"],
  [[{ type: "search_result", title: "T", source: "S", content: [text("a")] }], "T\nS\na"],
  [[{ type: "tool_reference", tool_name: "weather" }], "weather\n"],
])("the conversation of a message request has the result %j as '%s'", (content, told) => {
  const messages = messagesOf([hello, assistant(used("a")), user({ ...gave("a"), content })]) as unknown[];
  expect(messages.at(-1)).toEqual({ role: "tool", tool_call_id: "a", content: told });
});

test("a tool that a conversation loads again and again is loaded once", () => {
  const content = Array.from({ length: 3 }, () => ({ type: "tool_reference", tool_name: "weather" }));
  const tools = [{ ...weather, defer_loading: true }];
  const messages = [hello, assistant(used("a")), user({ ...gave("a"), content })];
  expect(readMessage({ messages, tools }).loadedTools).toEqual(["weather"]);
});

test("the conversation of a message request shows the images of a result, and has one where nothing else is shown", () => {
  const { body, imageParam } = readMessage({
    messages: [hello, assistant(used("a")), user({ ...gave("a"), content: [text("See:"), pixel] })],
  });
  expect(body.messages.at(-1)).toMatchObject({ role: "tool", content: [text("See:"), pixelUrl] });
  expect(imageParam).toBe("messages[2].content[0].content[1]");
});

test("the conversation of a message request may have a system message between a call and its result", () => {
  const messages = [hello, assistant(used("a")), { role: "system", content: "9 tokens left" }, user(gave("a"))];
  expect(messagesOf(messages)).toHaveLength(4);
});

test("the conversation of a message request sends thoughts back to the model, and names blocks that only Anthropic can read", () => {
  const thinking = { type: "thinking", thinking: "Hm.", signature: "abc" };
  const redacted = { type: "redacted_thinking", data: "abc" };
  const { body, ignored } = readMessage({
    messages: [hello, assistant(thinking, redacted, text("Hi.")), user(text("And?"))],
  });
  expect(body.messages[1]).toEqual({ role: "assistant", content: "Hi.", reasoning_content: "Hm." });
  expect(ignored).toEqual(["messages[1].content[1]"]);
});

test("the conversation of a message request makes one message of neighbours with one role", () => {
  const messages = [hello, user(text("again"), pixel), assistant(text("Hi.")), assistant(used("a")), user(gave("a"))];
  expect(messagesOf(messages)).toEqual([
    { role: "user", content: [text("Hello"), text("again"), pixelUrl] },
    { role: "assistant", content: "Hi.", tool_calls: [call("a")] },
    { role: "tool", tool_call_id: "a", content: "12 °C" },
  ]);
});

test("the conversation of a message request leaves out messages without content", () => {
  expect(messagesOf([hello, assistant(), user(), { role: "system", content: [] }])).toEqual([hello]);
});

const writtenMessages = ({ body }: ReadRequest): string =>
  JSON.stringify((JSON.parse(Buffer.from(body).toString()) as ChatBody).messages);

test("the job of a message begins with the same bytes in each turn, whatever the client changes between them", () => {
  const billing = (nonce: string) => text(`x-anthropic-billing-header: cc_version=2.1; cch=${nonce};`);
  const jobOf = (nonce: string, messages: unknown[]): ReadRequest => {
    const system = [billing(nonce), text("Be kind.")];
    const asked = { model: "llama3", max_tokens: 9, system, messages, stop_sequences: ["END"] };
    return readRequest("message", Buffer.from(JSON.stringify(asked)));
  };
  const left = { role: "system", content: "9 tokens left" };
  const first = [
    user({ ...text("Hello"), cache_control: { type: "ephemeral" } }),
    assistant(used("a")),
    user(gave("a")),
    left,
  ];
  const one = jobOf("1", first);
  const other = jobOf("2", [hello, ...first.slice(1), assistant(text("Hi."))]);
  const start = writtenMessages(one).slice(0, -1);
  expect(writtenMessages(other).slice(0, start.length)).toBe(start);
  expect(start).toContain("<system-reminder>");
  expect(start).not.toContain("billing");
  expect(one).toMatchObject({ tellsStop: true });
  expect(one.ignored).toContain("x-anthropic-billing-header");
});

const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "" } };
const elsewhere = { type: "image", source: { type: "url", url: "http://a.example/a.png" } };
const search = { type: "web_search_20250305", name: "web_search" };
const bash = { type: "bash_20250124", name: "bash" };
test.each<[code: string, param: string, fields: Record<string, unknown>]>([
  ["missing_required_parameter", "max_tokens", { max_tokens: undefined }],
  ["empty_array", "messages", { messages: [] }],
  ["invalid_value", "messages", { messages: [user()] }],
  ["invalid_value", "messages[0].content[0].source.type", { messages: [user(pdf)] }],
  ["invalid_value", "messages[0].content[0].source.url", { messages: [user(elsewhere)] }],
  ["invalid_value", "tool_choice.name", { tools: [weather], tool_choice: { type: "tool", name: "a" } }],
  ["unsupported_value", "tools[1].type", { tools: [weather, bash] }],
  ["unsupported_value", "tools[0].type", { tools: [search] }],
  ["unsupported_value", "mcp_servers", { mcp_servers: [{ type: "url" }] }],
  ["unsupported_parameter", "stop", { stop: ["a"] }],
  ["tool_messages_out_of_order", "messages[0].content[0].tool_use_id", { messages: [user(gave("a"))] }],
  ["tool_messages_out_of_order", "messages[2]", { messages: [hello, assistant(used("a")), hello] }],
  ["invalid_value", "messages[1]", { messages: [hello, assistant(used("a"), used("a"))] }],
])("a request of the Messages API is refused with %s at %s: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});

test("a request of the Messages API is refused with words that name the missing results", () => {
  const { message } = thrownBy({ messages: [hello, assistant(used("call_1"))] });
  expect(message).toBe("Each 'tool_use' needs a 'tool_result' in the next message. These calls have none: 'call_1'.");
});

test("a request of the Messages API is not refused for a search that is offered beside other tools", () => {
  const { body, ignored } = readMessage({ tools: [weather, search] });
  expect([body.tools?.length, ignored]).toEqual([1, ["tools[1]"]]);
});
