import { expect, test } from "vitest";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { blocksOfChat } from "../../../../services/gateway/routing/prompt-blocks.ts";
import {
  estimatedCharactersMax,
  upperEstimate,
  upperTokens,
} from "../../../../services/gateway/limits/upper-estimate.ts";
import corpus from "./token-corpus.json" with { type: "json" };
import { Tiktoken } from "js-tiktoken/lite";
import o200kBase from "js-tiktoken/ranks/o200k_base";
import {
  estimatePrompt,
  estimateTexts,
  meanTokens,
  sampledCharactersMax,
} from "../../../../services/gateway/limits/token-estimates.ts";
import scripts from "./script-corpus.json" with { type: "json" };

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

const tokenizer = new Tiktoken(o200kBase);
const all = [...corpus.texts, ...scripts].map(({ name, text }) => [name, text] as const);

function expectNear(estimate: number, text: string): void {
  const factor = estimate / tokenizer.encode(text).length;
  expect(factor).toBeGreaterThanOrEqual(0.8);
  expect(factor).toBeLessThanOrEqual(1.3);
}

test.each(all)("an estimate is 0.8 to 1.3 times the tokens of gpt-oss %s", (_, text) => {
  expectNear(estimatePrompt({ messages: [{ role: "user", content: text }] }), text);
  expectNear(estimateTexts([text]), text);
});

test.each(all)("the looked at characters of a long prompt stand for all of it: %s", (_, text) => {
  const long = text.repeat(Math.ceil((20 * sampledCharactersMax) / text.length));
  const estimate = meanTokens([long]);
  expect(estimate / (meanTokens([text]) * (long.length / text.length))).toBeCloseTo(1, 1);
  expect(meanTokens(Array.from(long.match(/.{1,90}/gsu) ?? []))).toBeLessThan(1.15 * estimate);
});

test("dense text at the end of a long prompt counts as at its beginning", () => {
  const [plain, dense] = ["all of them ".repeat(sampledCharactersMax), "漢字".repeat(sampledCharactersMax)];
  const apart = meanTokens([plain]) + meanTokens([dense]);
  expect(meanTokens([plain, dense]) / apart).toBeCloseTo(1, 1);
  expect(meanTokens([dense, plain]) / apart).toBeCloseTo(1, 1);
  expect(meanTokens([])).toBe(0);
});
