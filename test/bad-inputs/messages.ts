import { messagesMax } from "../../services/gateway/chats/read-chat.ts";
import type { Case, Section, Told } from "./row.ts";
import { got, posted, postedJson } from "./sent.ts";

const path = "/v1/messages";
const hello = { role: "user", content: "/script tokens=1" };
const request = (fields: object) => ({ model: "scripted", max_tokens: 64, messages: [hello], ...fields });

function wrong(code: string | null, param: string, more: Partial<Told> = {}): Told {
  const says = /^\{"type":"error","error":\{"type":"invalid_request_error","message":"/;
  return { status: 400, code, param, says, headers: { "request-id": /^req_/ }, ...more };
}

/** A request with these fields, and what its sender is told. */
function asks(row: number, what: string, fields: object, told: Told): Case {
  return { rows: [row], what, sent: postedJson(request(fields), { path }), told: [told] };
}

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const content = "messages[0].content";
const used = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] };
const tool = (place: number) => ({ name: `f${place}`, input_schema: { type: "object" } });

const conversations: readonly Case[] = [
  asks(187, "no messages", { messages: undefined }, wrong("missing_required_parameter", "messages")),
  asks(
    187,
    "one message more than there may be",
    { messages: Array.from({ length: messagesMax + 1 }, () => hello) },
    wrong("array_above_max_length", "messages", { says: /10000/ }),
  ),
  asks(
    188,
    "an unknown role",
    { messages: [{ role: "tool", content: "a" }] },
    wrong("invalid_value", "messages[0].role"),
  ),
  asks(188, "content that is a number", user(7), wrong("invalid_type", content)),
  asks(188, "a block that is a text", user(["a"]), wrong("invalid_type", `${content}[0]`)),
  asks(188, "a block of no kind", user([{}]), wrong("missing_required_parameter", `${content}[0].type`)),
  asks(188, "a call by a user", user(used.content), wrong("invalid_value", `${content}[0].type`)),
  asks(
    189,
    "a result without a call",
    user([{ type: "tool_result", tool_use_id: "a" }]),
    wrong(null, `${content}[0].tool_use_id`),
  ),
  asks(
    189,
    "an input of a call that is no object",
    { messages: [hello, { role: "assistant", content: [{ ...used.content[0], input: "{}" }] }] },
    wrong("invalid_type", "messages[1].content[0].input"),
  ),
];

const image = (source: unknown) => user([{ type: "image", source }]);
const source = `${content}[0].source`;

const blocks: readonly Case[] = [
  ...["http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "javascript:alert(1)"].map((url) =>
    asks(190, `an image at ${url}`, image({ type: "url", url }), wrong("invalid_value", `${source}.url`)),
  ),
  asks(
    190,
    "an image that is a page",
    image({ type: "base64", media_type: "text/html", data: "AA==" }),
    wrong("invalid_value", `${source}.media_type`),
  ),
  asks(
    190,
    "an image that is kept elsewhere",
    image({ type: "file", file_id: "a" }),
    wrong("invalid_value", `${source}.type`),
  ),
];

const fields: readonly Case[] = [
  asks(191, "a limit that is a text", { max_tokens: "9" }, wrong("invalid_type", "max_tokens")),
  asks(191, "a limit of null", { max_tokens: null }, wrong("missing_required_parameter", "max_tokens")),
  asks(
    191,
    "an effort that nobody has",
    { output_config: { effort: "huge" } },
    wrong("invalid_value", "output_config.effort"),
  ),
  asks(191, "thinking of an unknown kind", { thinking: { type: "deep" } }, wrong("invalid_value", "thinking.type")),
  asks(
    191,
    "a thread that is kept",
    { thread: { type: "create" } },
    wrong("unsupported_parameter", "thread", { says: /"thread_unsupported_request"/ }),
  ),
  asks(
    192,
    "10,000 tools",
    { tools: Array.from({ length: 10_000 }, (_, at) => tool(at)) },
    wrong("array_above_max_length", "tools"),
  ),
  asks(
    192,
    "a tool without a name",
    { tools: [{ input_schema: {} }] },
    wrong("missing_required_parameter", "tools[0].name"),
  ),
  asks(
    192,
    "a schema with a pattern of 1 MB",
    { tools: [{ name: "f", input_schema: { pattern: "(a+)+".repeat(200_000) } }] },
    wrong("string_too_long", "tools[0].input_schema"),
  ),
];

const errors: readonly Case[] = [
  {
    rows: [193],
    what: "no JSON",
    sent: posted("{", { path }),
    told: [{ status: 400, code: null, says: /"type":"invalid_request_error"/ }],
  },
  {
    rows: [193],
    what: "another type of body",
    sent: posted("a=1", { path, type: "text/plain" }),
    told: [{ status: 415, code: "unsupported_media_type", says: /"type":"invalid_request_error"/ }],
  },
  asks(
    193,
    "a model that nobody has",
    { model: "nobody-has-it" },
    {
      status: 404,
      code: "model_not_found",
      param: "model",
      says: /"type":"not_found_error"/,
    },
  ),
  {
    rows: [193],
    what: "no key",
    sent: () => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`,
    told: [{ status: 401, code: "key_invalid", says: /"type":"authentication_error"/ }],
  },
  {
    rows: [193],
    what: "batches, which are not served",
    sent: got(`${path}/batches`),
    told: [{ status: 404, code: "unknown_url", says: /"type":"not_found_error"/ }],
  },
  {
    rows: [194],
    what: "two keys in headers of one name",
    sent: ({ key }) => `GET /v1/models HTTP/1.1\r\nHost: a\r\nx-api-key: ${key}\r\nX-Api-Key: ${key}\r\n\r\n`,
    told: [{ status: 400, code: "bad_request" }],
    afterwards: "closed",
  },
  {
    rows: [194],
    what: "a wrong key in x-api-key beside a good one in Authorization",
    sent: got("/v1/models", ["x-api-key: nonsense"]),
    told: [{ status: 200 }],
  },
  {
    rows: [194],
    what: "a wrong key in x-api-key",
    sent: () => `GET /v1/models HTTP/1.1\r\nHost: a\r\nx-api-key: nonsense\r\n\r\n`,
    told: [{ status: 401, code: "key_invalid" }],
  },
  {
    rows: [194],
    what: "a page of models without a size",
    sent: got("/v1/models?limit=all", ["anthropic-version: 2023-06-01"]),
    told: [wrong("invalid_value", "limit")],
  },
];

export const messages: Section = {
  title: "requests of the Messages API",
  cases: [...conversations, ...blocks, ...fields, ...errors],
};
