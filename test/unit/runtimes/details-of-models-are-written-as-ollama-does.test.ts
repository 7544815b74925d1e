import { expect, test } from "vitest";
import { parameterText, quantizationName } from "../../../services/agent/runtimes/model-details.ts";

test.each([
  [8_000_000_000, "8B"],
  [3_212_749_888, "3.2B"],
  [136_731_648, "136.73M"],
  [659_520, "660K"],
  [12, "12"],
  [0, undefined],
  [null, undefined],
])("%s parameters are written %s", (count, text) => expect(parameterText(count)).toBe(text));

test.each([
  ["Q4_K - Medium", "Q4_K_M"],
  ["Q3_K - Small", "Q3_K_S"],
  ["Q8_0", "Q8_0"],
  ["all F32", "F32"],
  ["(guessed) all F32", "F32"],
  ["IQ2_XXS - 2.0625 bpw", "IQ2_XXS"],
  ["unknown, may not work", undefined],
  [undefined, undefined],
])("the quantisation %j of llama.cpp's is written %s", (description, name) => {
  expect(quantizationName(description)).toBe(name);
});
