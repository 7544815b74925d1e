import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeJson, encodeJson, endPayload } from "#shared/protocol/frame-payload.ts";
import { readEnd } from "../../../services/gateway/dispatch/read-end.ts";
import { messagesMax, readAnyChat } from "../../../services/gateway/openai/chat-request.ts";
import { readPlainChat } from "../../../services/gateway/openai/plain-chat.ts";

const odd = fc.constantFrom(null, true, "", "text", [], {}, 0, -1, 0.5, 1, 2, 129, 1e300, -2, 2.5, 2 ** 53);
const whole = fc.integer({ min: 1, max: 128 });
const real = fc.double({ min: 0, max: 1, noNaN: true });

/** Values as most are, of which now and then a field or two say something odd. */
function bent<T extends object>(usual: fc.Arbitrary<T>, fields: readonly string[]): fc.Arbitrary<object> {
  const bend = fc.dictionary(fc.constantFrom(...fields), odd, { maxKeys: 2, noNullPrototype: true });
  return fc
    .tuple(usual, fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: bend }))
    .map(([one, other]) => ({ ...one, ...other }));
}

const message = bent(fc.record({ role: fc.constantFrom("user", "system", "assistant"), content: fc.string() }), [
  "role",
  "content",
  "name",
  "tool_calls",
  "refusal",
]);
const numbers = {
  temperature: real,
  top_p: real,
  frequency_penalty: real,
  presence_penalty: real,
  seed: whole,
  n: whole,
};
const limits = fc.oneof(
  fc.constant({}),
  fc.record({ max_tokens: whole }),
  fc.record({ max_completion_tokens: whole }),
  whole.map((most) => ({ max_tokens: most, max_completion_tokens: most })),
);
const streaming = fc.oneof(
  fc.constant({}),
  fc.record({ stream: fc.boolean() }),
  fc.record({ stream: fc.constant(true), stream_options: bent(fc.record({ include_usage: fc.boolean() }), ["a"]) }),
);
const chat = bent(
  fc
    .tuple(
      fc.record({ model: fc.constant("llama3"), messages: fc.array(message, { minLength: 1, maxLength: 3 }) }),
      fc.record(numbers, { requiredKeys: [] }),
      limits,
      streaming,
    )
    .map((parts) => Object.assign({}, ...parts) as object),
  [...Object.keys(numbers), "model", "messages", "stream", "stream_options", "max_tokens", "stop", "tools", "user"],
).map((request) => request as Record<string, unknown>);

describe("a chat request", () => {
  test("that is plain is read exactly as the schema reads it, and nothing else is taken for plain", () => {
    let plain = 0;
    fc.assert(
      fc.property(chat, (request) => {
        const read = readPlainChat(structuredClone(request), messagesMax);
        if (read === undefined) return;
        plain += 1;
        expect(read).toEqual(readAnyChat(structuredClone(request)));
      }),
      { numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(100);
  });

  test("is plain as clients send it, whole or streamed", () => {
    const messages = [
      { role: "system", content: "Be short." },
      { role: "user", content: "Hello" },
    ];
    const request = { model: "llama3", messages, max_tokens: 100, temperature: 0.7 };
    expect(readPlainChat(request, messagesMax)).toBeDefined();
    const streamed = { ...request, stream: true, stream_options: { include_usage: true } };
    expect(readPlainChat(streamed, messagesMax)).toMatchObject({ stream: true, includeUsage: true });
  });

  const hello = { role: "user", content: "a" };
  test.each([
    ["with more messages than there may be", { messages: Array.from({ length: messagesMax + 1 }, () => hello) }],
    ["whose two limits differ", { max_tokens: 1, max_completion_tokens: 2 }],
    ["that says what to stream of an answer that is not", { stream_options: { include_usage: true } }],
  ])("%s is left to the schema to refuse", (_, fields) => {
    const request = { model: "llama3", messages: [{ role: "user", content: "Hello" }], ...fields };
    expect(readPlainChat(request, messagesMax)).toBeUndefined();
  });
});

const counts = { cachedTokens: whole, reasoningTokens: whole };
const usage = fc.record(
  { promptTokens: whole, completionTokens: whole, ...counts },
  { requiredKeys: ["promptTokens", "completionTokens"] },
);
const end = bent(
  fc.record({
    finishReason: fc.constantFrom("stop", "length", "tool_calls", null),
    usage: bent(usage, ["promptTokens", "completionTokens", ...Object.keys(counts)]),
    timings: bent(fc.record({ queuedMs: real, firstTokenMs: real, totalMs: real }), ["queuedMs", "firstTokenMs"]),
  }),
  ["finishReason", "usage", "timings"],
);

describe("an end frame", () => {
  test("is read exactly as the schema reads it", () => {
    let read = 0;
    fc.assert(
      fc.property(end, (told) => {
        const bytes = encodeJson(told);
        const here = readEnd(bytes);
        if (here !== undefined) read += 1;
        expect(here).toEqual(decodeJson(endPayload, bytes));
      }),
      { numRuns: 3_000 },
    );
    expect(read).toBeGreaterThan(100);
  });

  test("that is no JSON is none", () => {
    expect(readEnd(Buffer.from("{"))).toBeUndefined();
  });
});
