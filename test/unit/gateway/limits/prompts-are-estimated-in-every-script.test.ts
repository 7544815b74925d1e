import { Tiktoken } from "js-tiktoken/lite";
import o200kBase from "js-tiktoken/ranks/o200k_base";
import { expect, test } from "vitest";
import {
  estimatePrompt,
  estimateTexts,
  meanTokens,
  sampledCharactersMax,
} from "../../../../services/gateway/limits/token-estimates.ts";
import scripts from "./script-corpus.json" with { type: "json" };
import corpus from "./token-corpus.json" with { type: "json" };

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
