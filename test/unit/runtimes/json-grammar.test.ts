import { describe, expect, test } from "vitest";
import { JsonGrammar, UnsupportedSchema } from "../../../services/agent/runtimes/llama/json-grammar.ts";

/** That grammars admit what they should is tested with the real engine. */
describe("a grammar of JSON", () => {
  test.each([
    { type: "string", pattern: "^a" },
    { type: "integer", minimum: 1 },
    { type: "object", properties: { deep: { not: {} } } },
    { type: "array", uniqueItems: true },
    { allOf: [{ type: "object" }, { type: "object" }] },
    { anyOf: [{ type: "string" }], minLength: 1 },
    { $ref: "https://example.com/schema" },
    { $ref: "#/$defs/absent" },
    { type: "object", required: ["a"], additionalProperties: false },
    { type: "date" },
    { type: "array", items: false },
  ])("refuses what it cannot hold an answer to: %j", (schema) => {
    expect(() => new JsonGrammar().of(schema)).toThrow(UnsupportedSchema);
  });

  test("takes what says nothing about validity", () => {
    const schema = { $schema: "x", title: "t", description: "d", type: "string", format: "email", examples: ["e"] };
    expect(() => new JsonGrammar().of(schema)).not.toThrow();
  });

  test("holds a schema that holds itself in a rule that does", () => {
    const node = { type: "object", properties: { next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } } };
    const grammar = new JsonGrammar();
    const root = grammar.of({ $ref: "#/$defs/node", $defs: { node } });
    expect(grammar.text.split("\n").filter((line) => line.includes(`${root} | null`))).toHaveLength(1);
  });
});
