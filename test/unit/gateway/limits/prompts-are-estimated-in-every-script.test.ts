import { Tiktoken } from "js-tiktoken/lite";
import o200kBase from "js-tiktoken/ranks/o200k_base";
import { describe, expect, test } from "vitest";
import { meanTokens, walkedCharactersMax } from "../../../../services/gateway/limits/estimate-text.ts";
import { estimatePrompt, estimateTexts } from "../../../../services/gateway/limits/token-estimates.ts";
import scripts from "./script-corpus.json" with { type: "json" };
import corpus from "./token-corpus.json" with { type: "json" };

const tokenizer = new Tiktoken(o200kBase);
const all = [...corpus.texts, ...scripts].map(({ name, text }) => [name, text] as const);

function expectNear(estimate: number, text: string): void {
  const factor = estimate / tokenizer.encode(text).length;
  expect(factor).toBeGreaterThanOrEqual(0.8);
  expect(factor).toBeLessThanOrEqual(1.3);
}

describe("an estimate is 0.8 to 1.3 times the tokens of gpt-oss", () => {
  test.each(all)("%s", (_, text) => {
    expectNear(estimatePrompt({ messages: [{ role: "user", content: text }] }), text);
    expectNear(estimateTexts([text]), text);
  });
});

test("a prompt of many megabytes counts as the mixture at its beginning, and no other character is looked at", () => {
  const part = all.map(([, text]) => text).join("\n");
  const beginning = part.repeat(Math.ceil(walkedCharactersMax / part.length)).slice(0, walkedCharactersMax);
  const estimate = meanTokens([beginning]);
  expect(meanTokens([beginning, "漢".repeat(walkedCharactersMax), beginning])).toBeCloseTo(3 * estimate);
  expect(meanTokens([])).toBe(0);
});
