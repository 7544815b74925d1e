import { expect, test } from "vitest";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { blocksOfChat } from "../../../../services/gateway/routing/prompt-blocks.ts";
import {
  estimatedCharactersMax,
  upperEstimate,
  upperTokens,
} from "../../../../services/gateway/limits/upper-estimate.ts";
import corpus from "./token-corpus.json" with { type: "json" };

/**
 * Texts of this project, and a conversation of a coding agent about it, with the tokens that the tokenizers of five
 * families of models make of them. The conversation is written by the template of Qwen 3.
 */
const { texts, conversation } = corpus;
const { messages, tools, turns } = conversation;

test.each(texts.map(({ name, ...each }) => [name, each] as const))(
  "%s is estimated at no less than any tokenizer makes of it",
  (_, { text, tokens }) => {
    expect(upperTokens(text)).toBeGreaterThanOrEqual(Math.max(...Object.values(tokens)));
  },
);

const bodyOf = (count: number) => chatBody.parse({ messages: messages.slice(0, count), tools });
const models = ["Qwen 3", "Llama 3", "Gemma 3", "gpt-oss", "GPT-4"] as const;

test.each(models)("a first turn is estimated at most 30 % over, with the tokenizer of %s", (model) => {
  const [first] = turns;
  const { tokens } = upperEstimate(bodyOf(first?.messages ?? 0), []);
  expect(tokens / (first?.tokens[model] ?? 0)).toBeGreaterThanOrEqual(1);
  expect(tokens / (first?.tokens[model] ?? 0)).toBeLessThanOrEqual(1.3);
});

test.each(models)(
  "later turns are estimated at most 5 % over the last one that was counted, with the tokenizer of %s",
  (model) => {
    for (const [index, turn] of turns.entries()) {
      const before = turns[index - 1];
      if (before === undefined) continue;
      const body = bodyOf(turn.messages);
      const earlier = blocksOfChat(body, 1).turns;
      const indexes = earlier.map(({ index: each }) => each);
      const last = blocksOfChat(bodyOf(before.messages), 1).whole;
      const at = earlier.findIndex(({ hash }) => hash === last);
      const estimate = before.tokens[model] + (upperEstimate(body, indexes).behind[at] ?? 0);
      expect(estimate / turn.tokens[model]).toBeGreaterThanOrEqual(1);
      expect(estimate / turn.tokens[model]).toBeLessThanOrEqual(1.05);
    }
  },
);

test("a text over the limit counts its bytes, and the newer messages are still estimated", () => {
  const newer = { role: "user" as const, content: "Hello there" };
  const long = { role: "user" as const, content: "é".repeat(estimatedCharactersMax) };
  const { tokens, behind } = upperEstimate({ messages: [long, newer] }, [1]);
  expect(behind[0]).toBeLessThan(30);
  expect(tokens - (behind[0] ?? 0)).toBeGreaterThanOrEqual(2 * estimatedCharactersMax);
});

test("an image counts as many tokens as most models make of it at most", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const withImage = chatBody.parse({ messages: [{ role: "user", content: [{ type: "text", text: "Hi" }, image] }] });
  const without = chatBody.parse({ messages: [{ role: "user", content: "Hi" }] });
  expect(upperEstimate(withImage, []).tokens - upperEstimate(without, []).tokens).toBe(2_048);
});

test.each([
  ["carriage returns", "\r"],
  ["spaces that do not break", "\u00a0"],
  ["mixed space", " \r"],
  ["letters", "A"],
  ["marks", "-"],
])("a long run of %s is estimated in one walk", (_, text) => {
  // Many walks would take longer than a test may.
  expect(upperTokens(text.repeat(100_000))).toBeGreaterThan(0);
});
