import { messagesMax } from "../../services/gateway/chats/read-chat.ts";
import type { Case, Section, Told } from "./row.ts";
import { got, posted, postedJson } from "./sent.ts";

const hello = { role: "user", content: "/script tokens=1" };
const chat = (fields: object) => ({ model: "scripted", messages: [hello], stream: false, ...fields });
const prompt = (fields: object) => ({ model: "scripted", prompt: "/script tokens=1", stream: false, ...fields });

function wrong(code: string | null, param: string, more: Partial<Told> = {}): Told {
  return { status: 400, code, param, says: /^\{"error":"[^"]/, ...more };
}

function asks(row: number, what: string, fields: object, told: Told): Case {
  return { rows: [row], what, sent: postedJson(chat(fields), { path: "/api/chat" }), told: [told] };
}
function prompts(row: number, what: string, fields: object, told: Told): Case {
  return { rows: [row], what, sent: postedJson(prompt(fields), { path: "/api/generate" }), told: [told] };
}
function embeds(row: number, what: string, fields: object, told: Told): Case {
  const sent = postedJson({ model: "scripted:embed", ...fields }, { path: "/api/embed" });
  return { rows: [row], what, sent, told: [told] };
}

const called = { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: {} } }] };
const result = { role: "tool", content: "7", tool_name: "f" };
const tool = (name: string) => ({ type: "function", function: { name } });

const conversations: readonly Case[] = [
  asks(197, "messages that are a text", { messages: "Hello" }, wrong("invalid_type", "messages")),
  {
    rows: [197],
    what: "messages that are a text, with a header of Anthropic's",
    sent: postedJson(chat({ messages: "Hello" }), { path: "/api/chat", headers: ["anthropic-version: 2023-06-01"] }),
    told: [wrong("invalid_type", "messages")],
  },
  asks(197, "a message that is a text", { messages: ["Hello"] }, wrong("invalid_type", "messages[0]")),
  asks(
    197,
    "one message more than there may be",
    { messages: Array.from({ length: messagesMax + 1 }, () => hello) },
    wrong("array_above_max_length", "messages", { says: /10000/ }),
  ),
  asks(
    198,
    "an unknown role",
    { messages: [{ role: "robot", content: "a" }] },
    wrong("invalid_value", "messages[0].role"),
  ),
  asks(
    198,
    "content in parts, as other APIs have it",
    { messages: [{ role: "user", content: [{ type: "text", text: "a" }] }] },
    wrong("invalid_type", "messages[0].content"),
  ),
  asks(199, "a result without a call", { messages: [hello, result] }, wrong(null, "messages[1].role")),
  asks(199, "a result too many", { messages: [hello, called, result, result] }, wrong(null, "messages[3].role")),
  asks(199, "a call without a result", { messages: [hello, called, hello] }, wrong(null, "messages[2].role")),
  asks(
    199,
    "arguments that are a text",
    { messages: [hello, { ...called, tool_calls: [{ function: { name: "f", arguments: "{}" } }] }, result] },
    wrong("invalid_type", "messages[1].tool_calls[0].function.arguments"),
  ),
  asks(
    200,
    "an image that is none",
    { messages: [{ ...hello, images: ["aGVsbG8="] }] },
    wrong("invalid_value", "messages[0].images[0]"),
  ),
  asks(
    200,
    "an image at an address",
    { messages: [{ ...hello, images: ["http://169.254.169.254/latest/meta-data"] }] },
    wrong("invalid_value", "messages[0].images[0]"),
  ),
  asks(
    200,
    "an image that is a page",
    { messages: [{ ...hello, images: ["data:text/html;base64,AA=="] }] },
    wrong("invalid_value", "messages[0].images[0]"),
  ),
  asks(
    200,
    "an image in an instruction",
    { messages: [{ role: "system", content: "a", images: ["iVBORw0KGgo="] }, hello] },
    wrong("invalid_value", "messages[0].images"),
  ),
  asks(
    200,
    "an image for a model that is blind",
    { messages: [{ ...hello, images: ["iVBORw0KGgo="] }] },
    wrong("unsupported_value", "messages[0].images[0]"),
  ),
];

const fields: readonly Case[] = [
  asks(
    201,
    "an option that is a text",
    { options: { temperature: "hot" } },
    wrong("invalid_type", "options.temperature"),
  ),
  asks(201, "options that are a list", { options: [1] }, wrong("invalid_type", "options")),
  asks(
    201,
    "no tokens at all",
    { options: { num_predict: 0 } },
    wrong("integer_below_min_value", "options.num_predict"),
  ),
  asks(
    201,
    "a window of repeats that not every server knows",
    { options: { repeat_last_n: 128 } },
    wrong("unsupported_value", "options.repeat_last_n"),
  ),
  asks(
    201,
    "settings of the machine, which are named and ignored",
    { options: { num_ctx: 8_192, num_gpu: 99, mirostat: 2, num_predict: -1, seed: null }, keep_alive: "5m" },
    { status: 200, headers: { "x-trunkline-ignored": "options.num_ctx,options.num_gpu,options.mirostat,keep_alive" } },
  ),
  asks(202, "an effort that nobody has", { think: "huge" }, wrong("invalid_value", "think")),
  asks(202, "a form that nobody has", { format: "xml" }, wrong("invalid_value", "format")),
  asks(
    202,
    "a schema with a pattern of 1 MB",
    { format: { pattern: "(a+)+".repeat(200_000) } },
    wrong("string_too_long", "format"),
  ),
  asks(
    202,
    "10,000 tools",
    { tools: Array.from({ length: 10_000 }, (_, at) => tool(`f${at}`)) },
    wrong("array_above_max_length", "tools"),
  ),
  asks(
    202,
    "a tool without a name",
    { tools: [{ type: "function", function: {} }] },
    wrong("missing_required_parameter", "tools[0].function.name"),
  ),
  prompts(203, "a template of the client's own", { template: "{{ .Prompt }}" }, wrong("unsupported_value", "template")),
  prompts(203, "tokens of an earlier answer", { context: [1, 2] }, wrong("unsupported_value", "context")),
  prompts(203, "the rendered prompt", { _debug_render_only: true }, wrong("unsupported_value", "_debug_render_only")),
  prompts(
    203,
    "a text without a template, and instructions",
    { raw: true, system: "a" },
    wrong("unsupported_parameter", "system"),
  ),
  prompts(203, "a gap to fill, and a form", { suffix: "a", format: "json" }, wrong("unsupported_parameter", "format")),
  prompts(203, "a prompt that is a list", { prompt: ["a"] }, wrong("invalid_type", "prompt")),
  prompts(
    203,
    "a prompt that may be cut, and is not",
    { truncate: true, shift: false },
    { status: 200, headers: { "x-trunkline-ignored": "truncate" } },
  ),
  embeds(204, "nothing to embed", {}, wrong("missing_required_parameter", "input")),
  embeds(204, "an empty text among others", { input: ["a", ""] }, wrong("invalid_value", "input[1]")),
  embeds(204, "tokens to embed", { input: [1, 2] }, wrong("invalid_type", "input[0]")),
  embeds(
    204,
    "a vector without a length",
    { input: "a", dimensions: 0 },
    wrong("integer_below_min_value", "dimensions"),
  ),
];

const path = "/api/chat";
const errors: readonly Case[] = [
  {
    rows: [205],
    what: "no JSON",
    sent: posted("{", { path }),
    told: [{ status: 400, code: null, says: /^\{"error":"/ }],
  },
  {
    rows: [205],
    what: "another type of body",
    sent: posted("a=1", { path, type: "text/csv" }),
    told: [{ status: 415, code: "unsupported_media_type" }],
  },
  {
    rows: [205],
    what: "JSON that its sender calls a form, as curl does",
    sent: posted(JSON.stringify(chat({})), { path, type: "application/x-www-form-urlencoded" }),
    told: [{ status: 200 }],
  },
  {
    rows: [205],
    what: "no model to show",
    sent: postedJson({ model: "", name: "" }, { path: "/api/show" }),
    told: [wrong("invalid_value", "model")],
  },
  asks(
    206,
    "a model that nobody has",
    { model: "nobody-has-it:latest" },
    { status: 404, code: "model_not_found", param: "model", says: /nobody-has-it/ },
  ),
  {
    rows: [206],
    what: "a model outside the scopes of a key, by an empty request",
    sent: ({ narrow }) => postedJson({ model: "scripted" }, { path })({ key: narrow }),
    told: [{ status: 404, code: "model_not_found", param: "model" }],
  },
  {
    rows: [206],
    what: "no key, which is told in the field that the ollama command shows",
    sent: () => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`,
    told: [{ status: 401, code: "key_invalid", says: /"status":"No API key was sent/ }],
  },
  {
    rows: [207],
    what: "an unload, though another client may need the model",
    sent: postedJson({ model: "scripted", keep_alive: "0s" }, { path }),
    told: [{ status: 403, code: "insufficient_permissions", param: "keep_alive", says: /trunkline models unload/ }],
  },
  ...["pull", "push", "create", "copy", `blobs/sha256:${"a".repeat(64)}`].map((action) => ({
    rows: [207],
    what: `${action.slice(0, 6)}, which is not for keys`,
    sent: postedJson({ model: "a" }, { path: `/api/${action}` }),
    told: [{ status: 403, code: "insufficient_permissions" }],
  })),
  {
    rows: [207],
    what: "a pull with an admin key",
    sent: ({ admin }) => postedJson({ model: "a" }, { path: "/api/pull" })({ key: admin }),
    told: [{ status: 401, code: "key_invalid" }],
  },
  {
    rows: [208],
    what: "a route that Ollama has and nobody serves",
    sent: got("/api/me"),
    told: [{ status: 404, code: "unknown_url", says: /^\{"error":"/ }],
  },
  {
    rows: [208],
    what: "a chat by another method",
    sent: got(path),
    told: [{ status: 405, code: "method_not_allowed", headers: { allow: "POST" } }],
  },
];

export const ollama: Section = {
  title: "requests of Ollama's API",
  cases: [...conversations, ...fields, ...errors],
};
