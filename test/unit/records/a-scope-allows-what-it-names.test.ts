import * as fc from "fast-check";
import { expect, test } from "vitest";
import { scopes } from "#shared/records/key-record.ts";
import { allows, commonScopes } from "#shared/records/match-scope.ts";

test.each([
  ["*", "anything:at/all", true],
  ["llama3", "llama3", true],
  ["llama3", "llama3:8b", true],
  ["llama3", "llama3.2", false],
  ["llama3", "Llama3", false],
  ["llama3", "my/llama3", false],
  ["llama3:8b", "llama3:8b", true],
  ["llama3:8b", "llama3", false],
  ["llama3:8b", "llama3:8b:more", false],
  ["llama3:", "llama3:8b", false],
  ["hf.co/org/qwen", "hf.co/org/qwen:q4", true],
  ["host:5000/qwen", "host:5000/qwen:q4", true],
  ["gpt*", "gpt-4", true],
  ["gpt*", "GPT-4", false],
  ["*:8b", "llama3:8b", true],
  ["*:8b", "llama3:70b", false],
  ["l*a*3", "llama3", true],
  ["ab*ba", "aba", false],
  ["a.b", "axb", false],
  ["a?b", "axb", false],
  ["**", "", true],
] as const)("%s × %s: %s", (scope, modelId, allowed) => {
  expect(allows([scope], modelId)).toBe(allowed);
});

test("no scopes allow nothing, and of several one is enough", () => {
  expect(allows([], "llama3")).toBe(false);
  expect(allows(["qwen", "llama*"], "llama3")).toBe(true);
});

test("scopes that two lists have in common allow exactly what both lists allow", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", ":", "*"), minLength: 1, maxLength: 4 });
  const list = fc.array(word, { maxLength: 3 });
  fc.assert(
    fc.property(
      list,
      list,
      fc.string({ unit: fc.constantFrom("a", "b", ":"), maxLength: 6 }),
      (one, other, modelId) => {
        expect(allows(commonScopes(one, other), modelId)).toBe(allows(one, modelId) && allows(other, modelId));
      },
    ),
    { numRuns: 2_000 },
  );
});

/** By the definition of a glob, tried in every way; exponential, and right. */
function matchesByDefinition(glob: string, text: string): boolean {
  if (glob === "") return text === "";
  if (glob.startsWith("*")) {
    return matchesByDefinition(glob.slice(1), text) || (text !== "" && matchesByDefinition(glob, text.slice(1)));
  }
  return text !== "" && glob.charAt(0) === text.charAt(0) && matchesByDefinition(glob.slice(1), text.slice(1));
}

test("a pattern matches exactly what the definition of a glob says", () => {
  const narrow = (characters: string[], maxLength: number) =>
    fc.string({ unit: fc.constantFrom(...characters), maxLength });
  fc.assert(
    fc.property(narrow(["a", "b", "*"], 8), narrow(["a", "b"], 10), (glob, text) => {
      fc.pre(glob.includes("*"));
      expect(allows([glob], text)).toBe(matchesByDefinition(glob, text));
    }),
    { numRuns: 2_000 },
  );
});

test("a pattern made to be slow is not", () => {
  const slowest = "a*".repeat(127) + "b";
  // One that goes back for each star would take longer than a test may.
  for (let round = 0; round < 1_000; round += 1) expect(allows([slowest], "a".repeat(256))).toBe(false);
});

test.each([
  [[], "at least one scope"],
  [[""], "must not be empty"],
  [["x".repeat(257)], "at most 256 characters"],
  [["a b"], "without spaces"],
  [["a\u0000"], "printable"],
  [["a\u200b"], "printable"],
  [Array.from({ length: 65 }, () => "*"), "at most 64 scopes"],
])("a key cannot be issued with the scopes %j: %s", (given, reason) => {
  expect(scopes.safeParse(given).error?.issues[0]?.message).toContain(reason);
});
