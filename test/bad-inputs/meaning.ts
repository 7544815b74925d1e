import { messagesMax } from "../../services/gateway/chats/read-chat.ts";
import type { Case, Section, Told } from "./row.ts";
import { postedJson } from "./sent.ts";

const hello = { role: "user", content: "/script tokens=1" };
const chat = (fields: object) => ({ model: "scripted", messages: [hello], ...fields });
const many = <T>(count: number, make: (place: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const tool = (place: number) => ({ type: "function", function: { name: `f${place}` } });
const ok: Told = { status: 200 };

function wrong(code: string, param: string, more: Partial<Told> = {}): Told {
  return { status: 400, code, param, ...more };
}

/** A chat with these fields, and what its sender is told. */
function asks(rows: readonly number[], what: string, fields: object, told: Told): Case {
  return { rows, what, sent: postedJson(chat(fields)), told: [told] };
}

/** A field with values of it that are all told the same. */
function each(row: number, field: string, values: readonly unknown[], told: Told): Case[] {
  return values.map((value) =>
    asks([row], `${field} ${JSON.stringify(value)?.slice(0, 40)}`, { [field]: value }, told),
  );
}

const absent: Told = { status: 404, code: "model_not_found", param: "model" };

const models: readonly Case[] = [
  asks([117], "no model", { model: undefined }, wrong("missing_required_parameter", "model")),
  ...each(117, "model", [1, ["scripted"], { id: "scripted" }, null, true].slice(0, 3), wrong("invalid_type", "model")),
  asks([117], "a model that is null", { model: null }, wrong("missing_required_parameter", "model")),
  ...each(
    118,
    "model",
    ["*", ">", "a.b", "a b", "a\r\nPUB x", "../x", "$SYS.REQ", "_INBOX.x", "\u0000", "scripted\u0000", "SCRIPTED"],
    absent,
  ),
  asks([118], "a model of 5 KB", { model: "m".repeat(5_000) }, wrong("string_too_long", "model", { says: /256/ })),
  asks([119], "a model that nobody has", { model: "nobody-has-it" }, absent),
];

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const content = "messages[0].content";

const messages: readonly Case[] = [
  asks([120], "no messages", { messages: undefined }, wrong("missing_required_parameter", "messages")),
  asks([120], "as many messages as there may be", { messages: many(messagesMax, () => hello) }, ok),
  asks(
    [120],
    "one message more",
    { messages: many(messagesMax + 1, () => hello) },
    wrong("array_above_max_length", "messages", { says: /10000/ }),
  ),
  asks(
    [121],
    "an unknown role",
    { messages: [{ role: "robot", content: "" }] },
    wrong("invalid_value", "messages[0].role"),
  ),
  asks([121], "sound", user([{ type: "input_audio", input_audio: {} }]), wrong("invalid_value", `${content}[0].type`)),
  asks(
    [121],
    "an answer of a tool that nobody called",
    { messages: [hello, { role: "tool", tool_call_id: "c", content: "" }] },
    { status: 400, code: null, param: "messages[1].role" },
  ),
];

const sampling: readonly Case[] = [
  ...each(122, "n", [0, -1], wrong("integer_below_min_value", "n")),
  ...each(122, "n", [1.5, "2"], wrong("invalid_type", "n")),
  ...each(122, "n", [129, 1e6], wrong("integer_above_max_value", "n", { says: /128/ })),
  asks([122], "two answers, which can be had", { n: 2 }, { ...ok, says: /"index":1/ }),
  ...["max_tokens", "max_completion_tokens"].flatMap((field) => [
    ...each(123, field, [0, -2], wrong("integer_below_min_value", field)),
    asks([123], `${field} of -1, which is no limit`, { [field]: -1 }, ok),
    ...each(123, field, ["5", 1.5, true], wrong("invalid_type", field)),
    ...each(123, field, [1e300, 2 ** 53], wrong("integer_above_max_value", field)),
    asks([123], `${field} beyond what anybody says`, { [field]: 1e9 }, ok),
  ]),
  ...each(124, "temperature", [-1, -0.001], wrong("decimal_below_min_value", "temperature")),
  ...each(124, "temperature", [3, 2.001], wrong("decimal_above_max_value", "temperature")),
  ...each(124, "temperature", ["hot", [], {}], wrong("invalid_type", "temperature")),
  asks([124], "a temperature of null", { temperature: null }, ok),
  ...each(124, "top_p", [-0.1], wrong("decimal_below_min_value", "top_p")),
  ...each(124, "presence_penalty", [2.5], wrong("decimal_above_max_value", "presence_penalty")),
  ...each(125, "stream", ["yes", 1, "true"], wrong("invalid_type", "stream")),
  ...[{}, { stream: false }].map((fields) =>
    asks(
      [126],
      `stream_options with ${JSON.stringify(fields)}`,
      { ...fields, stream_options: { include_usage: true } },
      wrong("invalid_value", "stream_options"),
    ),
  ),
  ...each(
    127,
    "stop",
    [many(1_000, () => "a"), many(17, String)],
    wrong("array_above_max_length", "stop", { says: /16/ }),
  ),
  asks([127], "a stop of 1 MB", { stop: "s".repeat(1_000_000) }, wrong("string_too_long", "stop")),
  asks(
    [127],
    "one of several stops of 1 MB",
    { stop: ["a", "s".repeat(1_000_000)] },
    wrong("string_too_long", "stop[1]"),
  ),
  asks(
    [128],
    "100,000 biases",
    { logit_bias: Object.fromEntries(many(100_000, (place) => [String(place), 1])) },
    { status: 400, code: null, says: /jsonKeysMax/ },
  ),
  asks(
    [128],
    "a bias of 1e9",
    { logit_bias: { "1": 1, "50256": 1e9 } },
    wrong("decimal_above_max_value", "logit_bias.50256"),
  ),
];

const withSchema = (parameters: unknown) => ({ tools: [{ type: "function", function: { name: "f", parameters } }] });

const tools: readonly Case[] = [
  asks(
    [129],
    "a schema that refers to itself",
    withSchema({ $ref: "#/properties/a", properties: { a: { $ref: "#" } } }),
    ok,
  ),
  asks(
    [129],
    "a schema with a pattern that takes for ever",
    withSchema({ properties: { a: { type: "string", pattern: "^(a+)+$", default: `${"a".repeat(100)}!` } } }),
    ok,
  ),
  asks(
    [129],
    "a schema with a pattern of 1 MB",
    withSchema({ properties: { a: { type: "string", pattern: "(a+)+".repeat(200_000) } } }),
    wrong("string_too_long", "tools[0].function.parameters"),
  ),
  {
    rows: [129],
    what: "a schema of too many levels",
    sent: postedJson(chat(withSchema(JSON.parse(`${'{"items":'.repeat(70)}{}${"}".repeat(70)}`)))),
    told: [{ status: 400, code: null, says: /jsonDepthMax/ }],
  },
  asks([130], "10,000 tools", { tools: many(10_000, tool) }, wrong("array_above_max_length", "tools", { says: /512/ })),
  asks([130], "no tools", { tools: [] }, ok),
  asks(
    [130],
    "a tool with a name of 10,000 characters",
    { tools: [{ type: "function", function: { name: "x".repeat(10_000) } }] },
    wrong("string_too_long", "tools[0].function.name", { says: /256/ }),
  ),
];

const url = `${content}[0].image_url.url`;
const image = (of: unknown) => ({ model: "scripted:vision", ...user([{ type: "image_url", image_url: { url: of } }]) });

const elsewhere: readonly Case[] = [
  ...[
    "http://169.254.169.254/latest/meta-data",
    "https://example.com/a.png",
    "file:///etc/passwd",
    "ftp://a/b.png",
    "//example.com/a.png",
    "data:text/html;base64,AA==",
    "data:image/svg+xml,<svg/>",
    "javascript:alert(1)",
    "\tdata:image/png;base64,AA==",
    "",
  ].map((of) => asks([131], `an image at ${JSON.stringify(of)}`, image(of), wrong("invalid_value", url))),
  asks([131], "an image that is a number", image(7), wrong("invalid_type", url)),
  asks(
    [132],
    "arguments of a template that are no plain values",
    { chat_template_kwargs: { images: ["http://169.254.169.254"] } },
    wrong("invalid_type", "chat_template_kwargs.images", { saysNot: /169\.254/ }),
  ),
  asks(
    [132],
    "a template in the arguments of a template",
    { chat_template_kwargs: { chat_template: "{{ 1 }}" } },
    wrong("unsupported_parameter", "chat_template_kwargs.chat_template"),
  ),
  asks(
    [132],
    "a schema in a runtime's own field, which the machine cannot hold an answer to",
    { guided_json: { type: "object" } },
    wrong("unsupported_parameter", "guided_json"),
  ),
  asks([132], "a grammar", { grammar: "root ::= root" }, wrong("unsupported_parameter", "grammar")),
  ...["vllm_xargs", "api_base", "mm_processor_kwargs"].map((field) =>
    asks(
      [132],
      `${field}, which means nothing here`,
      { [field]: { url: "http://169.254.169.254" } },
      {
        ...ok,
        headers: { "x-trunkline-ignored": field },
        saysNot: /169\.254/,
      },
    ),
  ),
  ...["functions", "function_call", "audio", "web_search_options"].map((field) =>
    asks([132], `${field}, which is never given`, { [field]: [{ name: "f" }] }, wrong("unsupported_parameter", field)),
  ),
  ...Object.entries({ modalities: ["text", "audio"], verbosity: "high" }).map(([field, value]) =>
    asks([132], `${field}, of which one value is given`, { [field]: value }, wrong("unsupported_value", field)),
  ),
];

/** What could be taken for more than text where it is shown or logged. */
const nasty = [
  "canary-ansi\u001b[2J\u001b[31m",
  'canary-lines\r\n{"level":50,"msg":"forged"}',
  "canary-lookup ${jndi:ldap://a/b} {{7*7}} %s%n",
  `canary-long ${"x".repeat(10_000)}`,
];
const keyLike = "trunkline_0123456789ab_0123456789abcdefghijABCDEFGHIJ0123456789";

const told: readonly Case[] = [
  ...nasty.flatMap((text) =>
    Object.entries({ user: text, metadata: { [text]: text } }).map(([field, value]): Case => ({
      ...asks(
        [133],
        `${field} of ${JSON.stringify(text).slice(0, 30)}`,
        { [field]: value },
        {
          ...ok,
          headers: { "x-trunkline-ignored": field },
          saysNot: /canary/,
        },
      ),
      unlogged: /canary|forged/,
    })),
  ),
  ...nasty.map((text): Case => ({
    ...asks(
      [133],
      `a field called ${JSON.stringify(text).slice(0, 30)}`,
      { [text]: 1 },
      {
        ...ok,
        headers: { "x-trunkline-ignored": /^canary-[\w.%[\]-]{4,400}$/ },
      },
    ),
    unlogged: /canary|forged/,
  })),
  {
    ...asks([134], "a prompt that holds a key", user(`/script tokens=1\n${keyLike}`), ok),
    unlogged: /0123456789abcdefghijABCDEFGHIJ/,
  },
  {
    ...asks(
      [134],
      "a wrong field that holds a key",
      { temperature: keyLike },
      wrong("invalid_type", "temperature", { saysNot: /abcdefghij/ }),
    ),
    unlogged: /0123456789abcdefghijABCDEFGHIJ/,
  },
];

export const meaning: Section = {
  title: "what a request means",
  cases: [...models, ...messages, ...sampling, ...tools, ...elsewhere, ...told],
};
