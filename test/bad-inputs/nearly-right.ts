import * as fc from "fast-check";

export type Endpoint =
  | "chat/completions"
  | "responses"
  | "messages"
  | "completions"
  | "embeddings"
  | "rerank"
  | "score";

/** A body, and where it is sent. */
export interface Sent {
  readonly endpoint: Endpoint;
  readonly body: Buffer;
}

type Fields = Readonly<Record<string, unknown>>;

const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };

const customCall = { id: "d", type: "custom", custom: { name: "p", input: "a" } };

/** Right requests that hold about everything that may be in one. They are answered at once. */
const rightRequests: readonly { readonly endpoint: Endpoint; readonly fields: Fields }[] = [
  {
    endpoint: "chat/completions",
    fields: {
      model: "scripted",
      messages: [{ role: "user", content: "/script tokens=1" }],
      max_tokens: 1,
      stream: false,
    },
  },
  {
    endpoint: "chat/completions",
    fields: {
      model: "scripted",
      messages: [
        { role: "developer", content: [{ type: "text", text: "Be brief." }] },
        { role: "user", content: "Hello", name: "me" },
        { role: "assistant", content: null, tool_calls: [call, customCall], reasoning_content: "Hm." },
        { role: "tool", tool_call_id: "c", content: "12" },
        { role: "tool", tool_call_id: "d", content: "Done." },
        { role: "user", content: [{ type: "text", text: "/script tokens=1" }] },
      ],
      tools: [
        { type: "function", function: { name: "f", parameters: { type: "object", properties: {} }, strict: true } },
        {
          type: "custom",
          custom: { name: "p", format: { type: "grammar", grammar: { syntax: "lark", definition: "a" } } },
        },
      ],
      tool_choice: "auto",
      max_completion_tokens: 1,
      temperature: 0.5,
      stop: ["a", "b"],
      n: 1,
      seed: 7,
      top_k: 40,
      min_p: 0.1,
      typical_p: 1,
      repetition_penalty: 1.1,
      stop_token_ids: [7],
      chat_template_kwargs: { enable_thinking: true },
      think: true,
      stream: true,
      stream_options: { include_usage: true },
      user: "me",
      metadata: { a: "b" },
    },
  },
  {
    endpoint: "chat/completions",
    fields: {
      model: "scripted:vision",
      messages: [
        {
          role: "user",
          content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=", detail: "low" } }],
        },
        { role: "assistant", content: [{ type: "thinking", thinking: "Hm." }], tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: [{ type: "image_url", image_url: "data:image/png;base64,AA==" }] },
        { role: "user", content: "/script tokens=1" },
      ],
      max_tokens: 1,
      response_format: { type: "text" },
    },
  },
  {
    endpoint: "responses",
    fields: {
      model: "scripted",
      instructions: "Be brief.",
      input: [
        { role: "developer", content: [{ type: "input_text", text: "Be kind." }] },
        { type: "message", role: "user", content: "Hello" },
        { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
        { type: "function_call", id: "fc_1", call_id: "c", namespace: "home", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "12" }] },
        { type: "custom_tool_call", id: "ctc_1", call_id: "d", name: "patch", input: "a" },
        { type: "custom_tool_call_output", call_id: "d", output: "Done." },
        {
          role: "assistant",
          content: [{ type: "output_text", text: "Well.", annotations: [], logprobs: [] }],
          status: "completed",
        },
        { role: "user", content: [{ type: "input_text", text: "/script tokens=1" }] },
      ],
      tools: [
        { type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: true },
        { type: "namespace", name: "home", tools: [{ type: "function", name: "f" }] },
        { type: "custom", name: "patch", format: { type: "grammar", syntax: "regex", definition: "a+" } },
        { type: "web_search" },
      ],
      tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
      max_output_tokens: 1,
      temperature: 0.5,
      text: { format: { type: "text" } },
      reasoning: { summary: "auto" },
      include: ["reasoning.encrypted_content"],
      metadata: { a: "b" },
      stream: true,
      store: false,
      user: "me",
    },
  },
  {
    endpoint: "messages",
    fields: {
      model: "scripted",
      max_tokens: 1,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Hello" }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "a" },
            { type: "text", text: "Well." },
            { type: "tool_use", id: "c", name: "f", input: { a: [1] } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "12" }], is_error: true },
            { type: "document", source: { type: "text", media_type: "text/plain", data: "a" }, title: "A" },
            { type: "search_result", source: "a", title: "A", content: [{ type: "text", text: "b" }] },
          ],
        },
        { role: "system", content: "9 tokens left" },
        { role: "assistant", content: "Hm." },
        { role: "user", content: "/script tokens=1" },
      ],
      tools: [
        { name: "f", description: "F", input_schema: { type: "object", properties: {} }, strict: true },
        { type: "web_search_20250305", name: "web_search" },
      ],
      tool_choice: { type: "auto", disable_parallel_tool_use: false },
      stop_sequences: ["a"],
      temperature: 0.5,
      top_p: 0.5,
      thinking: { type: "adaptive" },
      output_config: { effort: "low" },
      metadata: { user_id: "me" },
      context_management: { edits: [] },
      stream: true,
    },
  },
  {
    endpoint: "messages",
    fields: {
      model: "scripted:vision",
      max_tokens: 1,
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
            { type: "text", text: "/script tokens=1" },
          ],
        },
      ],
      stream: false,
    },
  },
  {
    endpoint: "completions",
    fields: { model: "scripted", prompt: ["/script tokens=1"], max_tokens: 1, echo: false, stop: "x" },
  },
  {
    endpoint: "embeddings",
    fields: { model: "scripted:embed", input: ["one", "two"], encoding_format: "base64", dimensions: 8, user: "me" },
  },
  { endpoint: "embeddings", fields: { model: "scripted:embed", input: [[15339, 1917], [1]] } },
  {
    endpoint: "rerank",
    fields: { model: "scripted:embed", query: "a", documents: ["a", { text: "b" }], top_n: 1, return_documents: true },
  },
  { endpoint: "score", fields: { model: "scripted:embed", text_1: ["a"], text_2: ["a", "b"] } },
];

/** Texts that mean something to something: a shell, a database, a terminal, a template, an eye. */
const nastyTexts: readonly string[] = [
  "",
  " ",
  "undefined",
  "null",
  "NaN",
  "true",
  "-1",
  "0x10",
  "1e1000",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "toString",
  "' OR '1'='1' --",
  '"; DROP TABLE keys; --',
  "*)(uid=*))(|(uid=*",
  "$(touch /tmp/x); `id` | cat",
  "../../../etc/passwd",
  "C:\\Windows\\System32\\drivers",
  "\\\\host\\share",
  "%s%n%x%d",
  "%00%0a%2e%2e%2f",
  "{{7*7}}${7*7}<%= 7*7 %>#{7*7}",
  "${jndi:ldap://localhost/a}",
  "<script>alert(1)</script>",
  "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>",
  "data: [DONE]\n\n",
  "\r\nSet-Cookie: a=b\r\n\r\n",
  "\u001b[2J\u001b]0;title\u0007",
  "\u0000\u0001\u0008\u007f\u0080\u009f",
  "\u2028\u2029\u0085",
  "\u202eabc\u202c\u2066\u2069\u200e\u200f",
  "\u200b\u200c\u200d\u2060\ufeff",
  "\ufffe\uffff\u{1fffe}",
  "a\u0300\u0301\u0302\u0303\u0304\u0305".repeat(20),
  "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪",
  "ﷺİıſΣς",
  "Ａｄｍｉｎ аdmin",
  "/script tokens=0",
  "x".repeat(3_000),
  "語".repeat(300),
];

export const nastyText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...nastyTexts),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.tuple(fc.constantFrom(...nastyTexts), fc.constantFrom(...nastyTexts)).map(([a, b]) => a + b),
);

/** Any value, of the kinds that programs get wrong more often than chance would. */
const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1, 2, 1.5, 1e9, 1e308, -0, 2 ** 53, "", [], {}, [[]], [{}], {
    a: [],
  }),
  nastyText,
  fc.jsonValue({ maxDepth: 3 }),
  fc.tuple(nastyText, nastyText).map(([key, value]) => ({ [key]: value })),
);

const right = fc.constantFrom(...rightRequests);

/** A right request in which some values are others, are gone or came on top. */
export const withOtherValues: fc.Arbitrary<Sent> = fc
  .tuple(
    right,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom("swap", "remove", "add"), anyValue, nastyText), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([{ endpoint, fields }, changes]) => {
    const root: unknown = structuredClone(fields);
    for (const [pick, kind, value, name] of changes) {
      const places = placesIn(root);
      const { holder, key } = places[pick % places.length] ?? { holder: {}, key: "" };
      if (kind === "remove") Reflect.deleteProperty(holder, key);
      else own(holder, kind === "swap" ? key : name, structuredClone(value));
    }
    return { endpoint, body: Buffer.from(JSON.stringify(root)) };
  });

/** Also a key that would mean something to JavaScript. */
function own(holder: object, key: string, value: unknown): void {
  Reflect.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

function placesIn(value: unknown): { readonly holder: object; readonly key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [{ holder: value, key }, ...placesIn(inner)]);
}

/** A right request with some of its bytes changed. */
export const withOtherBytes: fc.Arbitrary<Sent> = fc
  .tuple(
    right,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat(30),
        fc.oneof(
          fc.uint8Array({ maxLength: 4 }),
          fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "\\", "-", ".", "0", "e").map((text) => Buffer.from(text)),
        ),
      ),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([{ endpoint, fields }, changes]) => {
    let body = Buffer.from(JSON.stringify(fields));
    for (const [pick, length, bytes] of changes) {
      const at = pick % (body.byteLength + 1);
      body = Buffer.concat([body.subarray(0, at), bytes, body.subarray(at + (length > 15 ? 0 : length))]);
    }
    return { endpoint, body };
  });

/** Whole requests whose every text is a nasty one. */
export const ofNastyTexts: fc.Arbitrary<Sent> = fc
  .record({
    model: fc.oneof(fc.constant("scripted"), nastyText),
    role: fc.oneof(fc.constant("user"), nastyText),
    content: nastyText,
    stop: nastyText,
    user: nastyText,
  })
  .map(({ model, role, content, stop, user }) => ({
    endpoint: "chat/completions",
    body: Buffer.from(JSON.stringify({ model, messages: [{ role, content }], stop, user, max_tokens: 1 })),
  }));

const pieces = [
  [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\t",
    "\ufeff",
    "\u00a0",
    '"',
    '"a"',
    '"a":',
    '"model":"scripted"',
    '"messages":[',
  ],
  ["0", "-0", "01", "1.", ".5", "1e", "1e5", "1E+2", "-", "+1", "0x1", "NaN", "Infinity", "true", "tru", "null", "nul"],
  ['"\\u00e9"', '"\\ud800"', '"\\x"', '"\\', '"\n"', '"\\u12"', '"\\"', "é", "\u0000", "undefined", "//", "/*", "'"],
].flat();

/** What is made of the pieces of JSON, and is JSON only by chance. */
export const nearJson: fc.Arbitrary<Sent> = fc
  .tuple(
    fc.array(fc.constantFrom(...pieces), { maxLength: 20 }),
    fc.constantFrom(["", ""], ["{", "}"], ['{"a":', "}"], ['{"a":[', "]}"]),
  )

  .map(([inner, [before = "", after = ""]]) => ({
    endpoint: "chat/completions",
    body: Buffer.from(before + inner.join("") + after),
  }));
