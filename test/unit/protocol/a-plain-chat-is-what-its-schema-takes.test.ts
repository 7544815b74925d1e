import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chatBody } from "#shared/protocol/chat-body.ts";
import { isPlainChatBody } from "#shared/protocol/plain-chat-body.ts";

const odd = fc.constantFrom(null, true, "", "text", [], {}, 0, -0, -1, 0.5, 1, 2, 129, Infinity, -2, 2.5, 2 ** 53);
const whole = fc.integer({ min: 1, max: 128 });
const real = fc.double({ min: 0, max: 1, noNaN: true });

/** Values as most are, of which now and then a field or two say something odd. */
function bent<T extends object>(usual: fc.Arbitrary<T>, fields: readonly string[]): fc.Arbitrary<object> {
  const bend = fc.dictionary(fc.constantFrom(...fields, "__proto__"), odd, { maxKeys: 2, noNullPrototype: true });
  return fc
    .tuple(usual, fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: bend }))
    .map(([one, other]) => ({ ...one, ...other }));
}

const message = bent(
  fc.record({ role: fc.constantFrom("user", "system", "assistant", "tool"), content: fc.string() }),
  ["role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content"],
);
const numbers = {
  temperature: real,
  top_p: real,
  frequency_penalty: real,
  presence_penalty: real,
  max_tokens: whole,
  seed: whole,
  n: whole,
};
const chat = bent(
  fc
    .tuple(
      fc.record({ messages: fc.array(message, { minLength: 1, maxLength: 3 }) }),
      fc.record(numbers, { requiredKeys: [] }),
    )
    .map((parts) => Object.assign({}, ...parts) as object),
  [...Object.keys(numbers), "messages", "stop", "tools", "logprobs", "reasoning_effort", "model"],
);

describe("the body of a chat", () => {
  test("that is plain is one that the schema takes as it is", () => {
    let plain = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          chat,
          fc.json().map((text): unknown => JSON.parse(text)),
        ),
        (body) => {
          if (!isPlainChatBody(body)) return;
          plain += 1;
          expect(chatBody.safeParse(body)).toEqual({ success: true, data: body });
        },
      ),
      { numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(100);
  });

  test("is plain as gateways send most of them", () => {
    const messages = [
      { role: "system", content: "Be short." },
      { role: "user", content: "Hello" },
    ];
    expect(isPlainChatBody({ messages, max_tokens: 100, temperature: 0.7, seed: -1 })).toBe(true);
  });
});
