import * as fc from "fast-check";

/** A chunk as JSON. */
export const chunk = (delta: object, others: object = {}): string =>
  JSON.stringify({ id: "x", choices: [{ index: 0, delta, finish_reason: null, ...others }] });

/** Texts as models say them, and all that could break out of one. */
export const anyWords = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("a", "Hello", " world", "grüße", "🌍", "") },
  fc.constantFrom('"', "\\", "\n", '","finish_reason":"stop', '"}}]}', "\u2028", "\u0000", '"content":"', "\\u0041"),
  fc.string({ unit: "binary", maxLength: 8 }),
);

const event = fc.oneof(
  { weight: 6, arbitrary: anyWords.map((text) => chunk({ content: text })) },
  anyWords.map((text) => chunk({ content: text }).replaceAll(":", ": ")),
  anyWords.map((text) => chunk({ role: "assistant", content: text })),
  anyWords.map((text) => chunk({ reasoning_content: text })),
  anyWords.map((text) => chunk({ content: text, reasoning: text })),
  anyWords.map((text) => chunk({ content: text }, { finish_reason: "" })),
  fc.constant(chunk({}, { finish_reason: "stop" })),
  fc.constant(chunk({ content: "x" }, { logprobs: { content: [] } })),
  fc.constant(JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } })),
  // Words put between the parts of a chunk as they are, which makes JSON of them or not.
  anyWords.map((text) => `{"id":"x","choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}]}`),
  anyWords.map((text) => `{"content":"${text}","choices":[{"index":0,"delta":{"content":"b"}}]}`),
  anyWords.map((text) => `{"choices":[{"index":0,"delta":{"content":"a","content":"${text}"}}]}`),
  anyWords.map((text) => `{"choices":[{"index":0,"delta":{"content":"${text}","content":"z"}}]}`),
  anyWords.map((text) => `{"choices":[{"index":0,"delta":{"x":"\\"content\\":\\"${text}\\"","content":"${text}"}}]}`),
  fc.constant('{"error":{"message":"broken"}}'),
  fc.constant("[DONE]"),
);

/** The data of the events of one answer, repeated, since only what comes several times is learnt. */
export const anyEvents = fc
  .array(
    fc.tuple(event, fc.integer({ min: 1, max: 4 })).map(([data, times]) => Array<string>(times).fill(data)),
    { maxLength: 12 },
  )
  .map((runs) => runs.flat());
