import { jsonKeysMax, jsonValuesMax } from "../../../services/gateway/intake/scan-json.ts";
import { messagesMax } from "../../../services/gateway/openai/chat-request.ts";

export type Endpoint = "chat" | "responses" | "embeddings" | "completions";

export interface Body {
  readonly name: string;
  readonly of: Endpoint;
  readonly text: string;
}

/** As many of something as one request may hold, when each takes so many values. */
function full<T>(values: number, make: (place: number) => T): T[] {
  return many(Math.floor((jsonValuesMax - 20) / values), make);
}
function many<T>(count: number, make: (place: number) => T): T[] {
  return Array.from({ length: count }, (_, place) => make(place));
}
/** An object of as many keys as one may have. */
function table(value: unknown, prefix = "k", keys = jsonKeysMax - 20): Record<string, unknown> {
  return Object.fromEntries(many(keys, (place) => [`${prefix}${place}`, value]));
}
const tables = (value: unknown) =>
  many(Math.floor(jsonValuesMax / jsonKeysMax) - 1, (place) => table(value, `t${place}_`));

const hello = { role: "user", content: "Hello" };
const call = (id: string, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "f", arguments: "{}", ...more },
});
const chat = (fields: object) => JSON.stringify({ model: "m", messages: [hello], ...fields });
const user = (content: unknown) => chat({ messages: [{ role: "user", content }] });
const assistant = (fields: object) => chat({ messages: [{ role: "assistant", ...fields }] });
const tool = (fields: object) => ({ type: "function", function: { name: "f", ...fields } });

/** A long conversation with tools, as agents have them: what all others are compared with. */
export const ordinaryBody: Body = {
  name: "a chat of 5,000 messages, half of them calls",
  of: "chat",
  text: chat({
    messages: many(2_500, (place) => [
      { role: "assistant", content: null, tool_calls: [call(`c${place}`)] },
      { role: "tool", tool_call_id: `c${place}`, content: "12 °C" },
    ]).flat(),
  }),
};

const chats: Readonly<Record<string, string>> = {
  "messages that are numbers": chat({ messages: many(messagesMax, () => 1) }),
  "more messages than there may be": chat({ messages: full(1, () => 1) }),
  "messages without content": chat({ messages: many(messagesMax, () => ({ role: "user" })) }),
  "messages of a wrong role": chat({ messages: many(messagesMax, () => ({ role: "robot" })) }),
  "messages without parts": chat({ messages: many(messagesMax, () => ({ role: "user", content: [] })) }),
  "messages of wrong parts": chat({ messages: many(messagesMax, () => ({ role: "assistant", content: [1] })) }),
  "only the last message is wrong": chat({ messages: [...many(messagesMax - 1, () => hello), 1] }),
  "messages with null fields": chat({ messages: full(4, () => ({ ...hello, name: null })).slice(0, messagesMax) }),
  "messages with fields too many": chat({ messages: many(messagesMax, () => ({ ...hello, x: 1 })) }),
  "messages with tables of fields too many": chat({ messages: tables(1).map((fields) => ({ ...hello, ...fields })) }),
  "parts that are numbers": user(full(1, () => 1)),
  "parts without text": user(full(3, () => ({ type: "text", text: 1 }))),
  "parts with fields too many": user(full(4, () => ({ type: "text", text: "a", x: 1 }))),
  "right parts": user(full(3, () => ({ type: "text", text: "a" }))),
  "pictures with fields too many": user(
    full(6, () => ({ type: "image_url", image_url: { url: "data:image/png;base64,", x: 1 } })),
  ),
  "refusals that are numbers": assistant({ content: full(3, () => ({ type: "refusal", refusal: 1 })) }),
  "calls that are empty": assistant({ tool_calls: full(2, () => ({})) }),
  "calls without names": assistant({ tool_calls: full(6, () => call("", { name: "" })) }),
  "calls with fields too many": assistant({ tool_calls: full(8, (place) => call(`c${place}`, { x: 1 })) }),
  "no lists of calls": chat({ messages: many(messagesMax, () => ({ role: "assistant", tool_calls: [] })) }),
  "a text in place of a function": chat({ tools: [{ type: "function", function: "x".repeat(250_000) }] }),
  "20 MB in place of a function": chat({ tools: [{ type: "function", function: "x".repeat(20_000_000) }] }),
  "20 MB in place of a schema": chat({ response_format: { type: "json_schema", json_schema: "x".repeat(20_000_000) } }),
  "tools that are empty": chat({ tools: many(128, () => ({})) }),
  "tools with tables as schemas": chat({ tools: tables(1).map((parameters) => tool({ parameters })) }),
  "tools with schemas of many small objects": chat({
    tools: [tool({ parameters: { all: full(2, (place) => ({ [`k${place}`]: 1 })) } })],
  }),
  "a schema as deep as may be, many times": chat({
    tools: [tool({ parameters: { all: full(56, () => JSON.parse(`${"[".repeat(54)}${"]".repeat(54)}`)) } })],
  }),
  "biases that are texts": chat({ logit_bias: table("x") }),
  "biases out of range": chat({ logit_bias: table(1_000) }),
  "allowed tools that are not offered": chat({
    tools: many(128, (place) => tool({ name: `f${place}` })),
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "auto", tools: many(128, () => tool({ name: "g" })) },
    },
  }),
  "stops that are numbers": chat({ stop: full(1, () => 1) }),
  "modalities without end": chat({ modalities: full(1, () => "text") }),
  "fields too many": chat(table(1)),
  "fields that are null": chat(table(null)),
  "a key that is there twice, at the end": `${chat({ tools: tables(1) }).slice(0, -1)},"model":"m"}`,
  "numbers that take a close look": chat({ x: full(1, () => 0) }).replaceAll("0", "20000000000000000000"),
  "a key as long as the rest": chat({ ["k".repeat(20_000_000)]: 1, temperature: "hot" }),
  "20 MB of a picture": user([
    { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(20_000_000)}` } },
  ]),
  "20 MB of quotes": user('"'.repeat(10_000_000)),
  "4 MB that break at their end": `${user("\n".repeat(2_000_000))}}`,
  "brackets without end": "[".repeat(1_000_000),
};

const response = (fields: object) => JSON.stringify({ model: "m", input: "Hello", ...fields });
const called = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const gave = (id: string) => ({ type: "function_call_output", call_id: id, output: "12 °C" });
const ofUser = (content: unknown) => response({ input: [{ role: "user", content }] });

const responses: Readonly<Record<string, string>> = {
  "a response to 2,500 calls and what they gave": response({
    input: many(messagesMax / 4, (place) => [called(`c${place}`), gave(`c${place}`)]).flat(),
  }),
  "a turn of 5,000 calls": response({
    input: [
      ...many(messagesMax / 2, (place) => called(`c${place}`)),
      ...many(messagesMax / 2, (place) => gave(`c${place}`)),
    ],
  }),
  "a text in place of how the text is to be": response({ text: "x".repeat(250_000) }),
  "20 MB in place of how the model is to think": response({ reasoning: "x".repeat(20_000_000) }),
  "20 MB in place of a format": response({ text: { format: "x".repeat(20_000_000) } }),
  "items that are numbers": response({ input: many(messagesMax, () => 1) }),
  "more items than there may be": response({ input: full(1, () => 1) }),
  "items of a wrong type": response({ input: many(messagesMax, () => ({ type: "robot" })) }),
  "items without end": response({ input: many(messagesMax, () => hello) }),
  "only the last item is wrong": response({ input: [...many(messagesMax - 1, () => hello), 1] }),
  "items with null fields": response({ input: full(4, () => ({ ...hello, id: null })).slice(0, messagesMax) }),
  "items with fields too many": response({ input: many(messagesMax, () => ({ ...hello, x: 1 })) }),
  "items with tables of fields too many": response({ input: tables(1).map((fields) => ({ ...hello, ...fields })) }),
  "parts of an item": ofUser(full(3, () => ({ type: "input_text", text: "a" }))),
  "parts of an item with fields too many": ofUser(full(4, () => ({ type: "input_text", text: "a", x: 1 }))),
  "thoughts without end": response({
    input: [{ type: "reasoning", content: full(3, () => ({ type: "reasoning_text", text: "a" })) }, hello],
  }),
  "namespaces of empty functions": response({
    tools: many(128, () => ({ type: "namespace", name: "a", tools: full(128 * 3, () => ({})).slice(0, 128) })),
  }),
  "namespaces of many functions": response({
    tools: many(80, (place) => ({
      type: "namespace",
      name: `n${place}`,
      tools: many(128, (at) => ({ type: "function", name: `f${at}` })),
    })),
  }),
  "inclusions without end": response({ include: full(1, () => "a") }),
  "searches of the web": response({ tools: many(128, () => ({ type: "web_search", x: many(300, () => 1) })) }),
  "notes that are numbers": response({ metadata: table(1) }),
  "notes without end": response({ metadata: table("a") }),
  "a response with fields too many": response(table(1)),
};

const embeddings: Readonly<Record<string, string>> = {
  "empty texts": JSON.stringify({ model: "m", input: many(2_048, () => "") }),
  "texts that are objects": JSON.stringify({ model: "m", input: ["a", ...many(2_047, () => ({}))] }),
  "more texts than there may be": JSON.stringify({ model: "m", input: full(1, () => "a") }),
  "tokens in place of texts": JSON.stringify({ model: "m", input: full(2, () => [1]) }),
};

const completions: Readonly<Record<string, string>> = {
  "prompts that are numbers": JSON.stringify({ model: "m", prompt: ["a", ...full(1, () => 1)] }),
  "empty prompts": JSON.stringify({ model: "m", prompt: full(1, () => "") }),
};

/** The most that one request may make a gateway read, each kind of it wrong in another way, or right. */
export const worstBodies: readonly Body[] = [
  ...named("chat", chats),
  ...named("responses", responses),
  ...named("embeddings", embeddings),
  ...named("completions", completions),
];

function named(of: Endpoint, texts: Readonly<Record<string, string>>): Body[] {
  return Object.entries(texts).map(([name, text]) => ({ name, of, text }));
}
