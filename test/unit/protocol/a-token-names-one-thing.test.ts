import { expect, test } from "vitest";
import { newToken, tokenText } from "#shared/protocol/identifiers.ts";

test("a token is 22 letters and digits, all of them used, and comes only once", () => {
  const tokens = Array.from({ length: 20_000 }, () => newToken());
  for (const token of tokens) expect(token).toMatch(tokenText);
  expect(new Set(tokens).size).toBe(tokens.length);
  expect(new Set(tokens.join("")).size).toBe(62);
});

test("a token behind a word is as good as one alone, and the word is whole", () => {
  const words = ["req_", "chatcmpl-", "", "embd-"];
  const tokens = Array.from({ length: 20_000 }, (_, at) => {
    const word = words[at % words.length] ?? "";
    const named = newToken(word);
    expect(named.slice(0, word.length)).toBe(word);
    expect(named.slice(word.length)).toMatch(tokenText);
    return named.slice(word.length);
  });
  expect(new Set(tokens).size).toBe(tokens.length);
});

test("every character of a token is as likely as any other", () => {
  const counts = new Map<string, number>();
  const characters = Array.from({ length: 20_000 }, () => newToken()).join("");
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1);
  // About 7 100 of each; a difference of 12 % is ten standard deviations, and a modulo bias would be 25 %.
  const mean = characters.length / 62;
  for (const count of counts.values()) expect(Math.abs(count - mean) / mean).toBeLessThan(0.12);
});

test.each(["", "a".repeat(21), "a".repeat(23), `${"a".repeat(21)}.`, `${"a".repeat(22)}\n`, `${"a".repeat(21)}é`])(
  "%j is no token",
  (text) => {
    expect(tokenText.test(text)).toBe(false);
  },
);
