import { expect, test } from "vitest";
import { fieldOf, wordsAtField } from "../../../services/console/field-words.ts";

test.each([
  ["ttl", "ttl"],
  ["scopes[1]", "scopes"],
  ["budget.tokens", "budget"],
  ["targets[0].machines[2]", "targets[0].machines"],
  ["kind", undefined],
  ["", undefined],
])("a fault of the parameter %s belongs to the field %s", (param, field) => {
  const fields = ["ttl", "scopes", "budget", "targets[0].machines"];
  expect(fieldOf(param, (name) => fields.includes(name))).toBe(field);
});

test.each([
  ["Invalid value for 'ttl': must be longer than nothing.", "Must be longer than nothing."],
  ["Invalid type for 'rpm': expected an integer, but got a string.", "Expected an integer, but got a string."],
  ["'rpm' must be at most 1000000.", "Must be at most 1000000."],
  ["The key has expired; extend it first.", "The key has expired; extend it first."],
])("the message «%s» stands at its field as «%s»", (message, words) => {
  expect(wordsAtField(message)).toBe(words);
});
