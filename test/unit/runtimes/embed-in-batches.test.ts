import { expect, test } from "vitest";
import { embedInBatches, textsAtOnce } from "../../../services/agent/runtimes/fan-out.ts";
import type { EmbedRun, Embeddings } from "../../../services/agent/runtimes/runtime.ts";
import { emittedBy } from "../../harness/ask-runtime.ts";

const capabilities = { completion: false, vision: false, embedding: true, tools: false, thinking: false };

function embedding(options: { texts: number; dimensions?: number; drops?: number }) {
  const { texts, dimensions, drops } = options;
  const input = Array.from({ length: texts }, (_, at) => `text ${at}`);
  const asked: (readonly string[])[] = [];
  async function embed({ body }: EmbedRun): Promise<Embeddings> {
    asked.push(body.input);
    const kept = body.input.filter((text) => text !== `text ${drops}`);
    return { vectors: kept.map((text) => [Number(text.slice(5)), 0, 0]), promptTokens: body.input.length };
  }
  const run: EmbedRun = {
    model: "m",
    capabilities,
    contextWindow: 512,
    body: dimensions === undefined ? { input } : { input, dimensions },
    signal: new AbortController().signal,
    onProgress: () => undefined,
  };
  return { asked, all: () => emittedBy((emit) => embedInBatches(embed, run, emit)) };
}

test("many texts are given to a runtime in batches, and their vectors come in the order of the texts", async () => {
  const texts = textsAtOnce * 2 + 3;
  const { asked, all } = embedding({ texts });
  const events = await all();
  expect(asked.map(({ length }) => length)).toEqual([textsAtOnce, textsAtOnce, 3]);
  const vectors = events.filter((event) => event.kind === "embedding");
  expect(vectors.map(({ index, vector }) => [index, vector[0]])).toEqual(
    Array.from({ length: texts }, (_, at) => [at, at]),
  );
  expect(events.at(-1)).toEqual({ kind: "usage", promptTokens: texts, completionTokens: 0 });
});

test("a text without a vector is a failure of the runtime", async () => {
  await expect(embedding({ texts: 3, drops: 2 }).all()).rejects.toMatchObject({ code: "upstream_error" });
});

test("vectors of another length than was asked for are refused by the parameter", async () => {
  const refused = { code: "unsupported_parameter", param: "dimensions", message: expect.stringContaining("3 numbers") };
  await expect(embedding({ texts: 1, dimensions: 8 }).all()).rejects.toMatchObject(refused);
  await expect(embedding({ texts: 1, dimensions: 3 }).all()).resolves.toHaveLength(3);
});
