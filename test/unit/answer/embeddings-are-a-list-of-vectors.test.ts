import * as fc from "fast-check";
import type { CreateEmbeddingResponse } from "openai/resources/embeddings";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { limits } from "#shared/protocol/limits.ts";
import { head, regular, rendered, rendererFor } from "./answers.ts";
import { eventsIn, payloadOf } from "../../harness/answer-payload.ts";

type Shape = "embeddings-float" | "embeddings-base64";

const finish: AnswerEvent = { kind: "finish", reason: "stop" };
const usage: AnswerEvent = { kind: "usage", promptTokens: 5, completionTokens: 0 };
const vectorsOf = (...vectors: number[][]): AnswerEvent[] =>
  vectors.map((vector, index) => ({ kind: "embedding", index, vector }));
const listOf = (shape: Shape, events: readonly AnswerEvent[], batch = 1): CreateEmbeddingResponse =>
  JSON.parse(rendered(shape, regular([...events, finish]), { batch }));

function floatsOf(base64: unknown): number[] {
  const bytes = Buffer.from(String(base64), "base64");
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}

test("embeddings are OpenAI's list, with every field that its schema requires and no other", () => {
  const expected: CreateEmbeddingResponse = {
    object: "list",
    data: [
      { object: "embedding", index: 0, embedding: [0.5, -1] },
      { object: "embedding", index: 1, embedding: [1e-9, 0] },
    ],
    model: head.model,
    usage: { prompt_tokens: 5, total_tokens: 5 },
  };
  expect(listOf("embeddings-float", [...vectorsOf([0.5, -1], [1e-9, 0]), usage])).toEqual(expected);
});

test("embeddings as base64 are 32-bit floats, little-endian", () => {
  const { data } = listOf("embeddings-base64", vectorsOf([1, -2]));
  expect(data[0]?.embedding).toBe(Buffer.from("0000803f000000c0", "hex").toString("base64"));
});

test("embeddings are the same numbers as base64, in the order of the texts, however they come and in whatever batches", () => {
  const vector = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 9 });
  const coming = fc.array(vector, { minLength: 1, maxLength: 9 }).chain((vectors) => {
    const events = fc.shuffledSubarray(vectorsOf(...vectors), { minLength: vectors.length });
    return fc.record({ vectors: fc.constant(vectors), events, batch: fc.integer({ min: 1, max: 9 }) });
  });
  fc.assert(
    fc.property(coming, ({ vectors, events, batch }) => {
      const plain = listOf("embeddings-float", events, batch).data;
      const packed = listOf("embeddings-base64", events, batch).data;
      const indexes = vectors.map((_, index) => index);
      expect(plain.map(({ index }) => index)).toEqual(indexes);
      expect(packed.map(({ index }) => index)).toEqual(indexes);
      const zeroesAlike = vectors.map((numbers) => numbers.map((number) => number + 0));
      expect(plain.map(({ embedding }) => embedding.map((number) => number + 0))).toEqual(zeroesAlike);
      expect(packed.map(({ embedding }) => floatsOf(embedding).map((number) => number + 0))).toEqual(zeroesAlike);
    }),
  );
});

test("embeddings cross the wire as the same numbers", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })), fc.nat(), (vector, index) => {
      expect(eventsIn(payloadOf({ kind: "embedding", index: index % 1e9, vector }))).toEqual([
        { kind: "embedding", index: index % 1e9, vector },
      ]);
    }),
  );
});

test("embeddings leave as they come, so that nobody has to keep them all", () => {
  const renderer = rendererFor("embeddings-base64", head);
  const [first, second] = vectorsOf([1], [2]);
  if (first === undefined || second === undefined) throw new Error("there are two vectors");
  expect(renderer?.push([second])).toHaveLength(0);
  expect(String(renderer?.push([first]))).toMatch(/"index":0,.*"index":1,/);
});

test("embeddings name the limit that they break, and the request that does is to be changed", () => {
  const vector = Array<number>(1_000_000).fill(0.123_456_789);
  const renderer = rendererFor("embeddings-float", head);
  const most = Math.floor(limits.embeddingsCharactersMax / JSON.stringify(vector).length);
  for (let index = 0; index < most; index += 1) renderer?.push([{ kind: "embedding", index, vector }]);
  const fault = expect.objectContaining({
    code: "invalid_value",
    param: "input",
    message: expect.stringMatching(/embeddingsCharactersMax/),
  });
  expect(() => renderer?.push([{ kind: "embedding", index: most, vector }])).toThrow(fault);
});

test("embeddings fit what a whole answer may be, as long as they keep to their own limit", () => {
  expect(limits.embeddingsCharactersMax + 2_048).toBeLessThan(limits.wholeAnswerBytesMax);
});

const vector = (index: number): AnswerEvent => ({ kind: "embedding", index, vector: [index] });
test.each<[string, AnswerEvent[]]>([
  ["there is none at all", []],
  ["the first is missing", [vector(1)]],
  ["one between is missing", [vector(0), vector(2)]],
  ["one comes twice", [vector(0), vector(0)]],
  ["one comes twice before its turn", [vector(1), vector(1), vector(0)]],
  ["one holds what is no number", vectorsOf([1, Number.NaN])],
])("embeddings are a fault of the runtime when %s", (_, events) => {
  expect(() => listOf("embeddings-float", events)).toThrow(expect.objectContaining({ code: "upstream_error" }));
});
