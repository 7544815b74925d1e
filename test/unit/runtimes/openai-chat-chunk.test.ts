import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isPlainChunk,
  readChatChunk,
  readChunkBySchema,
} from "../../../services/agent/runtimes/openai/openai-chat-chunk.ts";

const odd = fc.constantFrom(null, undefined, true, "", "text", [], {}, [null], [{}], 0, -1, 0.5, 1);

/** Values as most are, of which now and then a field or two say something odd. */
function bent<T extends object>(usual: fc.Arbitrary<T>, fields: readonly string[]): fc.Arbitrary<object> {
  const bend = fc.dictionary(fc.constantFrom(...fields), odd, { maxKeys: 2, noNullPrototype: true });
  return fc
    .tuple(usual, fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: bend }))
    .map(([one, other]) => ({ ...one, ...other }));
}

const text = fc.option(fc.string(), { nil: null });
const delta = bent(fc.record({ content: text, reasoning: text, reasoning_content: text }, { requiredKeys: [] }), [
  "role",
  "content",
  "reasoning",
  "reasoning_content",
  "tool_calls",
]);
const choice = bent(
  fc.record(
    { index: fc.constant(0), delta, finish_reason: fc.constantFrom(null, "stop", ""), logprobs: fc.constant(null) },
    { requiredKeys: ["index", "delta"] },
  ),
  ["index", "delta", "finish_reason", "logprobs", "text"],
);
const details = fc.record({ cached_tokens: fc.nat(), reasoning_tokens: fc.nat() }, { requiredKeys: [] });
const usage = bent(
  fc.record(
    { prompt_tokens: fc.nat(), completion_tokens: fc.nat(), total_tokens: fc.nat(), prompt_tokens_details: details },
    { requiredKeys: ["prompt_tokens"] },
  ),
  ["prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"],
);
const chunk = bent(
  fc.record(
    { choices: fc.array(choice, { maxLength: 2 }), usage: fc.option(usage, { nil: null }) },
    { requiredKeys: ["choices"] },
  ),
  ["id", "choices", "usage", "prompt_progress", "error"],
);

describe("a chunk of a chat", () => {
  test("that is plain says what the schema reads of it", () => {
    let plain = 0;
    fc.assert(
      fc.property(fc.oneof(chunk, odd), (value) => {
        if (!isPlainChunk(value)) return;
        plain += 1;
        expect(value).toMatchObject(readChunkBySchema(value));
        expect(readChatChunk(value)).toBe(value);
      }),
      { numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(100);
  });
});
