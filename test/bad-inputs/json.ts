import { jsonDepthMax, jsonKeysMax, jsonValuesMax } from "../../services/gateway/http/read-json.ts";
import type { Case, Section, Told } from "./row.ts";
import { goodChat, posted } from "./sent.ts";

const broken: Told = { status: 400, code: null };
const ok: Told = { status: 200 };

/** A good chat with more in it: pairs of its own, after which it goes on. */
const withPairs = (pairs: string): string => `{${pairs},${goodChat.slice(1)}`;
/** The pairs as a tool's schema, which is the caller's own. */
const withSchema = (schema: string): string =>
  withPairs(`"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]`);
const schemaAt = "tools[0].function.parameters";
const saying = (text: string): string => goodChat.replace("/script tokens=1", `/script tokens=1\\n${text}`);
const keys = (count: number): string => Array.from({ length: count }, (_, place) => `"k${place}":1`).join();

/** A body as it is, and what its sender is told. */
function body(rows: readonly number[], what: string, sent: string | Buffer, told: Told): Case {
  return { rows, what, sent: posted(sent), told: [told] };
}

const noJson: readonly Case[] = [
  body([100], "an empty body", "", { ...broken, says: /no body/ }),
  ...["null", "[]", '"s"', "123", "true"].map((text) =>
    body([101], `a body of ${text}`, text, { status: 400, code: "invalid_type", says: /must be a JSON object/ }),
  ),
  ...Object.entries({
    "cut short": goodChat.slice(0, -9),
    "with a comma too many": `${goodChat.slice(0, -1)},}`,
    "in single quotes": goodChat.replaceAll('"', "'"),
    "with NaN": withPairs('"temperature":NaN'),
    "with undefined": withPairs('"temperature":undefined'),
    "with a comment": `${goodChat} // please`,
    "with a raw line break in a text": saying("\n"),
    "followed by another": goodChat + goodChat,
  }).map(([what, text]) =>
    body([102], `JSON ${what}`, text, { ...broken, says: /not valid JSON.* (line \d|ends too)/ }),
  ),
  body([103], "a byte order mark", `\ufeff${goodChat}`, { ...broken, says: /byte order mark/ }),
  ...Object.entries({
    "a lone continuation": Buffer.of(0x80),
    "an overlong slash": Buffer.of(0xc0, 0xaf),
    "a surrogate": Buffer.of(0xed, 0xa0, 0x80),
    "a letter cut in two": Buffer.of(0xc3),
  }).map(([what, bytes]) =>
    body([104], `text that is no UTF-8: ${what}`, Buffer.concat([Buffer.from(saying("").slice(0, -4)), bytes]), {
      ...broken,
      says: /not UTF-8.* byte \d+/,
    }),
  ),
  body([104], "UTF-16", Buffer.from(goodChat, "utf16le"), broken),
  body([104], "UTF-16 that says so", Buffer.from(`\ufeff${goodChat}`, "utf16le"), { ...broken, says: /not UTF-8/ }),
];

const otherMeanings: readonly Case[] = [
  ...["\\ud83d", "\\ude00", "\\ude00\\ud83d", "a\\uDBFFb"].map((half) =>
    body([105], `half a character: ${half}`, saying(half), {
      status: 400,
      code: "invalid_value",
      param: "messages[0].content",
    }),
  ),
  body([105], "half a character in a key", withSchema('{"\\ud800":1}'), {
    status: 400,
    code: "invalid_value",
    param: `${schemaAt}.\ufffd`,
  }),
  { ...body([106], "control characters in a text", saying("\\u0000\\u0007\\u001b[31m\\r\\n"), ok), unlogged: /\[31m/ },
  ...Object.entries({
    ['"__proto__":{"stream":true}']: "__proto__",
    ['"\\u005f_proto__":{"stream":true}']: "__proto__",
    ['"metadata":{"__proto__":1}']: "metadata.__proto__",
    ['"constructor":{"prototype":{"stream":true}}']: "constructor",
  }).map(([pairs, param]) => body([107], pairs, withPairs(pairs), { status: 400, code: "invalid_value", param })),
  body([107], "a schema that reaches for all objects", withSchema('{"a":[{"__proto__":{}}]}'), {
    status: 400,
    code: "invalid_value",
    param: `${schemaAt}.a[0].__proto__`,
  }),
  body([107], "a property called constructor", withSchema('{"properties":{"constructor":{"type":"string"}}}'), ok),
  ...Object.entries({
    ['"model":"a"']: "model",
    ['"mod\\u0065l":"a"']: "model",
    ['"stream":true,"stream":false']: "stream",
    ['"max_tokens":1,"temperature":0,"max_tokens":2']: "max_tokens",
    ['"metadata":{"a":[{"b":1,"b":1}]}']: "metadata.a[0].b",
  }).map(([pairs, param]) => body([108], `a key twice: ${pairs}`, withPairs(pairs), { ...broken, param })),
];

const tooMuch: readonly Case[] = [
  ...[jsonDepthMax, 5_000, 500_000].map((levels) =>
    body([109], `${levels} levels within an object`, `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`, {
      ...broken,
      says: /64 levels deep \(jsonDepthMax\)/,
    }),
  ),
  body([110], "60,000 keys", withPairs(keys(60_000)), { ...broken, says: /jsonKeysMax/ }),
  body([110], "60,000 keys in several objects", withPairs(`"a":[${`{${keys(1_000)}},`.repeat(60)}1]`), {
    ...broken,
    says: /jsonValuesMax/,
  }),
  body([110], "as many keys as one object may have, array indexes too", withSchema(`{${indexes(jsonKeysMax)}}`), ok),
  body([110], "more values than there may be", withPairs(`"a":[${"1,".repeat(jsonValuesMax)}1]`), {
    ...broken,
    says: /jsonValuesMax/,
  }),
];

function indexes(count: number): string {
  return Array.from({ length: count }, (_, place) => `"${place * 131_071}":1`).join();
}

const numbers: readonly Case[] = [
  ...["1e400", "-1e400", "1e-400"].map((number) =>
    body([113], `the number ${number}`, withPairs(`"seed":${number}`), {
      status: 400,
      code: "invalid_value",
      param: "seed",
    }),
  ),
  ...(
    [
      ["9007199254740993", "integer_above_max_value"],
      ["-9007199254740993", "integer_below_min_value"],
    ] as const
  ).map(([number, code]) =>
    body([113], `the number ${number}`, withPairs(`"seed":${number}`), {
      status: 400,
      code,
      param: "seed",
      says: /9007199254740991/,
    }),
  ),
  body(
    [113],
    "a number of 64 bits in a schema, which may be rounded",
    withSchema('{"enum":[1,9223372036854775807]}'),
    ok,
  ),
  body([113], "the number -0", withPairs('"temperature":-0'), ok),
  body([114], "a number of 200 digits", withPairs(`"seed":${"1".repeat(200)}`), {
    status: 400,
    code: "invalid_value",
    param: "seed",
    says: /numberCharactersMax/,
  }),
];

export const json: Section = {
  title: "bodies",
  cases: [...noJson, ...otherMeanings, ...tooMuch, ...numbers],
};
