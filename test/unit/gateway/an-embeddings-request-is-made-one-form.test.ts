import { afterAll, expect, test } from "vitest";
import { embedInputsMax } from "#shared/protocol/job-bodies.ts";
import { Tiktoken } from "js-tiktoken/lite";
import cl100kBase from "js-tiktoken/ranks/cl100k_base";
import { openReader } from "../../harness/read-requests.ts";
import { readEmbeddingsRequest } from "../../../services/gateway/apis/embeddings/embeddings-request.ts";
import { reading } from "./reading-requests.ts";

const { read, thrownBy, faultOf } = reading(readEmbeddingsRequest, { model: "embed", input: "Hello" });

const reader = openReader(1);
afterAll(() => reader.stop());

test("an embeddings request is a list of texts for machines, however it was written, and wants numbers unless it says otherwise", () => {
  const plain = { model: "embed", stream: false, form: "float", body: { input: ["Hello"] }, ignored: [] };
  expect(read()).toEqual(plain);
  expect(read({ input: ["Hello"], encoding_format: null, dimensions: null })).toEqual(plain);
  const body = { input: Array<string>(embedInputsMax).fill("a"), dimensions: 256 };
  expect(read({ ...body, encoding_format: "base64" })).toEqual({ ...plain, form: "base64", body });
});

test("an embeddings request has what means nothing here ignored by name", () => {
  expect(read({ user: "ann", truncate: true }).ignored).toEqual(["user", "truncate"]);
});

test.each<[code: string, param: string, fields: Record<string, unknown>]>([
  ["missing_required_parameter", "model", { model: undefined }],
  ["missing_required_parameter", "input", { input: undefined }],
  ["invalid_type", "input", { input: 7 }],
  ["missing_required_parameter", "input", { input: null }],
  ["invalid_type", "input", { input: [1, 2, 3] }],
  ["invalid_type", "input", { input: [[1, 2], [3]] }],
  ["invalid_value", "input", { input: "" }],
  ["empty_array", "input", { input: [] }],
  ["array_above_max_length", "input", { input: Array(embedInputsMax + 1).fill("a") }],
  ["invalid_value", "encoding_format", { encoding_format: "hex" }],
  ["integer_below_min_value", "dimensions", { dimensions: 0 }],
  ["integer_above_max_value", "dimensions", { dimensions: 65_537 }],
])("an embeddings request is told %s at %s: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});

test("an embeddings request of tokens is told to send texts, and why", () => {
  expect(thrownBy({ input: [[1, 2]] }).message).toMatch(/text, not tokens/);
});

test("an embeddings request of OpenAI's tokens has the texts that a client made into them", async () => {
  const encoding = new Tiktoken(cl100kBase);
  const texts = ["Hello world!", "Grüße, 世界 🐈", " ", "a\r\n\tb"];
  const [first = ""] = texts;
  const ask = (input: unknown) =>
    reader.read("embeddings", Buffer.from(JSON.stringify({ model: "embed", input }, null, 1)));
  const textsIn = async (input: unknown): Promise<unknown> => {
    const { body } = await ask(input);
    return (JSON.parse(Buffer.from(body).toString()) as { input: unknown }).input;
  };
  expect(await textsIn(texts.map((text) => encoding.encode(text)))).toEqual(texts);
  expect(await textsIn(encoding.encode(first))).toEqual([first]);
  expect(await textsIn(encoding.encode("a🐈").slice(0, -1))).toEqual(["a"]);
  expect(await textsIn([encoding.encode(first), "and text"])).toEqual([first, "and text"]);
  const noTokens = [[[1, 100_300]], [[-1]], [[0.5]], [[1, "a"]]];
  for (const input of noTokens) await expect(ask(input)).rejects.toMatchObject({ code: "invalid_value" });
  await expect(ask([[]])).rejects.toMatchObject({ code: "invalid_value", param: "input[0]" });
});
