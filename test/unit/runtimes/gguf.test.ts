import { expect, test } from "vitest";
import { answerSchema, parametersSchema, withoutNulls } from "../../../services/agent/runtimes/llama/gguf-schema.ts";
import { idOf } from "../../../services/agent/runtimes/llama/gguf-file.ts";
import { partsOf } from "../../../services/agent/runtimes/model-digest.ts";

const param = "response_format.json_schema.schema";

test("a schema of an answer is written in the dialect of the engine's grammars", () => {
  const schema = {
    type: "object",
    properties: {
      note: { type: ["string", "null"], maxLength: 5 },
      kind: { anyOf: [{ const: "point" }, { enum: ["line", 2] }] },
      at: { $ref: "#/definitions/pair" },
      day: { type: "string", format: "date" },
      mail: { type: "string", format: "email" },
    },
    definitions: { pair: { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 2 } },
  };
  expect(answerSchema(schema, param)).toMatchObject({
    properties: {
      note: { oneOf: [{ type: "string", maxLength: 5 }, { type: "null" }] },
      kind: { oneOf: [{ const: "point" }, { enum: ["line", 2] }] },
      at: { $ref: "#/$defs/pair" },
      day: { type: "string", format: "date" },
      mail: { type: "string" },
    },
    additionalProperties: false,
    $defs: { pair: { type: "array", items: { type: "integer" } } },
  });
});

test("a schema of an answer may bound numbers, which no grammar of the engine does", () => {
  const age = { type: "integer", minimum: 0, maximum: 9, exclusiveMinimum: -1, exclusiveMaximum: 10 };
  expect(answerSchema({ properties: { age } }, param)).toMatchObject({ properties: { age: { type: "integer" } } });
});

test.each([
  ["a pattern", { type: "string", pattern: "^a" }, "'pattern'"],
  ["a step of a number", { properties: { age: { type: "integer", multipleOf: 5 } } }, "'multipleOf'"],
  ["all of several schemas", { allOf: [{ type: "string" }, { maxLength: 3 }] }, "'allOf'"],
  ["a reference to nothing", { $ref: "#/$defs/none" }, "#/$defs/none"],
  ["alternatives beside properties", { anyOf: [{}], properties: { a: {} } }, "beside"],
  ["an enum of objects", { enum: [{ a: 1 }] }, "objects"],
  ["a required property that is not declared", { type: "object", required: ["a"] }, "declare"],
])("a schema of an answer is refused by name with %s, which the engine would drop", (_, schema, name) => {
  expect(() => answerSchema(schema, param)).toThrow(name);
});

test("a schema of a tool's parameters keeps what a grammar cannot express for the prompt", () => {
  const parameters = { type: "object", properties: { code: { type: "string", pattern: "^a" } }, required: ["code"] };
  expect(parametersSchema(parameters)).toMatchObject(parameters);
});

test("a schema of a tool's parameters lets an optional parameter be null, which a call then leaves out", () => {
  const parameters = { type: "object", properties: { a: {}, b: { type: "string" } }, required: ["a"] };
  expect(parametersSchema(parameters)).toMatchObject({
    properties: { b: { oneOf: [{ type: "string" }, { type: "null" }] } },
  });
  expect(withoutNulls({ a: null, b: null }, parameters)).toBe(`{"a":null}`);
  expect(withoutNulls(undefined, undefined)).toBe("{}");
});

test("a schema of a tool's parameters is any object where it has another form", () => {
  expect(parametersSchema({ allOf: [{ type: "object" }] })).toEqual({ type: "object", additionalProperties: true });
});

test.each([
  ["/models/Qwen3-8B-Q4_K_M.gguf", undefined, "Qwen3-8B-Q4_K_M"],
  ["Big-00002-of-00003.gguf", "Big Model", "Big"],
  [`blobs/sha256-${"a".repeat(64)}`, "Named Inside", "Named Inside"],
  [`blobs/sha256-${"a".repeat(64)}`, undefined, `sha256-${"a".repeat(64)}`],
  ["odd.GGUF", "", "odd"],
])("a model is called by its file: %s", (path, ownName, id) => {
  expect(idOf(path, ownName)).toBe(id);
});

test("a model in parts is known from any of them", () => {
  const parts = ["/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf"];
  expect(parts.map(partsOf)).toEqual([parts, parts]);
  expect(partsOf("/m/a.gguf")).toEqual(["/m/a.gguf"]);
});
