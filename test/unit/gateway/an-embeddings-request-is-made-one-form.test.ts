import { describe, expect, test } from "vitest";
import { embedInputsMax } from "#shared/protocol/job-bodies.ts";
import { readEmbeddingsRequest, type ReadEmbeddingsRequest } from "../../../services/gateway/api/text-requests.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

function read(fields: Readonly<Record<string, unknown>> = {}): ReadEmbeddingsRequest {
  return readEmbeddingsRequest(JSON.parse(JSON.stringify({ model: "embed", input: "Hello", ...fields })));
}

const thrownBy = (fields: Readonly<Record<string, unknown>>) => faultThrownBy(() => read(fields));

describe("an embeddings request", () => {
  test("is a list of texts for machines, however it was written, and wants numbers unless it says otherwise", () => {
    const plain = { model: "embed", format: "float", body: { input: ["Hello"] }, ignored: [] };
    expect(read()).toEqual(plain);
    expect(read({ input: ["Hello"], encoding_format: null, dimensions: null })).toEqual(plain);
    expect(read({ input: ["a", "b"], encoding_format: "base64", dimensions: 256 })).toEqual({
      model: "embed",
      format: "base64",
      body: { input: ["a", "b"], dimensions: 256 },
      ignored: [],
    });
  });

  test("has what means nothing here ignored by name", () => {
    expect(read({ user: "ann", truncate: true }).ignored).toEqual(["user", "truncate"]);
  });

  test.each<[code: string, param: string, fields: Record<string, unknown>]>([
    ["missing_required_parameter", "model", { model: undefined }],
    ["missing_required_parameter", "input", { input: undefined }],
    ["invalid_type", "input", { input: 7 }],
    ["missing_required_parameter", "input", { input: null }],
    ["invalid_type", "input", { input: [1, 2, 3] }],
    ["invalid_type", "input", { input: [[1, 2], [3]] }],
    ["invalid_type", "input[1]", { input: ["a", 7] }],
    ["invalid_value", "input", { input: "" }],
    ["invalid_value", "input[1]", { input: ["a", ""] }],
    ["empty_array", "input", { input: [] }],
    ["array_above_max_length", "input", { input: Array(embedInputsMax + 1).fill("a") }],
    ["invalid_value", "encoding_format", { encoding_format: "hex" }],
    ["integer_below_min_value", "dimensions", { dimensions: 0 }],
    ["integer_above_max_value", "dimensions", { dimensions: 65_537 }],
    ["invalid_type", "dimensions", { dimensions: 1.5 }],
  ])("is told %s at %s: %o", (code, param, fields) => {
    const fault = thrownBy(fields);
    expect({ code: fault.code, param: fault.param }).toEqual({ code, param });
  });

  test("of tokens is told to send texts, and why", () => {
    expect(thrownBy({ input: [[1, 2]] }).message).toMatch(/text, not tokens/);
  });

  test("may hold as many texts as it is told it may", () => {
    const input = Array(embedInputsMax).fill("a");
    expect(read({ input }).body.input).toHaveLength(embedInputsMax);
  });
});
