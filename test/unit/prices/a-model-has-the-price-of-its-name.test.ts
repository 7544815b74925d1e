import { expect, test } from "vitest";
import { PriceTable } from "#shared/prices/price-table.ts";

const table = new PriceTable(
  ["*", "qwen*", "qwen3", "qwen3:8b", "*3:8b", "gpt-5", "gpt-5 external", "gpt-* external", "aa*", "a*b"].map(
    (name, input) => ({ name, input }),
  ),
);
const nameOf = ["*", "qwen*", "qwen3", "qwen3:8b", "*3:8b", "gpt-5", "gpt-5 external", "gpt-* external", "aa*", "a*b"];

test.each([
  ["qwen3:8b", false, "qwen3:8b"],
  ["qwen3:8b:latest", false, "qwen3:8b"],
  ["qwen3:30b", false, "qwen*"],
  ["qwen3", false, "qwen3"],
  ["llama3:8b", false, "*3:8b"],
  ["aab", false, "a*b"],
  ["llama3.2", false, "*"],
  ["gpt-5", false, "gpt-5"],
  ["gpt-5", true, "gpt-5 external"],
  ["gpt-4", true, "gpt-* external"],
  ["gpt-4", false, "*"],
  ["llama3.2", true, "*"],
])("the model %s (external machine: %s) has the price of %s", (model, isExternal, name) => {
  expect(nameOf[table.find(model, isExternal)?.input ?? -1]).toBe(name);
});

test("a model that no price fits has none", () => {
  const few = new PriceTable([{ name: "gpt-5 external", input: 1 }]);
  expect([few.find("gpt-5", false), few.find("llama3.2", true)]).toEqual([undefined, undefined]);
});
