import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelId } from "#shared/protocol/model.ts";
import { type RankBody, rerankDocumentsMax } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-json.ts";
import { embeddingCeiling, estimateMax, estimateTexts } from "../../limits/token-estimates.ts";
import { type ReadRequest, type Reads, readAsTexts, type Translated } from "../../requests/read-request.ts";
import { dropNulls } from "../../requests/request-fields.ts";

const text = z.string().min(1);

/** A request to rerank as the clients of Jina and Cohere write it. A null field counts as missing. */
export const rerankRequest = z.object({
  model: modelId.describe("The id of a model whose `x_capabilities` hold `rerank`."),
  query: text,
  documents: z
    .array(z.union([text, z.object({ text })]))
    .min(1)
    .max(rerankDocumentsMax),
  top_n: z.int().min(1).nullish(),
  return_documents: z.boolean().nullish(),
});

const texts = z.union([text, z.array(text).min(1).max(rerankDocumentsMax)]);

/** A request for scores as vLLM's clients write it. A null field counts as missing. */
export const scoreRequest = z.object({ model: rerankRequest.shape.model, text_1: texts, text_2: texts });

/** The parts of a request to rerank that its answer needs; `documents` only if the answer repeats them. */
export interface RankingTerms {
  readonly topN?: number | undefined;
  readonly documents?: readonly string[] | undefined;
}

export const reads: Reads = {
  rerank: { read: (input) => readAsRanking(readRerankRequest(input)) },
  score: { read: (input) => readAsRanking(readScoreRequest(input)) },
};

function readAsRanking(request: Translated<RankBody, RankingTerms>): ReadRequest<RankingTerms> {
  const { query, documents: pairs } = request.body;
  // A model reads the query once for each document.
  const tokens = Math.min(estimateTexts(pairs) + estimateTexts([query]) * pairs.length, estimateMax);
  const queries = Buffer.byteLength(query) * pairs.length;
  const ceilingOf = (bytes: number) => embeddingCeiling({ input: pairs }, queries + bytes);
  return readAsTexts(request, { kind: "rerank", tokens, ceilingOf });
}

/** Reads a request to rerank and translates it to the job body. */
export function readRerankRequest(input: Record<string, unknown>): Translated<RankBody, RankingTerms> {
  dropNulls(input);
  const { value, ignored } = readShape(rerankRequest, input);
  const { model, query, top_n: topN, return_documents: repeats } = value;
  const documents = value.documents.map((each) => (typeof each === "string" ? each : each.text));
  const form = { topN: topN ?? undefined, documents: repeats === true ? documents : undefined };
  return { model, stream: false, body: { query, documents }, ignored, form };
}

/** Reads a request for scores. A job has one query, so pairs with different first texts are refused. */
export function readScoreRequest(input: Record<string, unknown>): Translated<RankBody, RankingTerms> {
  dropNulls(input);
  const { value, ignored } = readShape(scoreRequest, input);
  const [query = "", ...others] = [value.text_1].flat();
  if (others.length > 0) {
    const message = "'text_1' must be one text, with which each of 'text_2' is scored: send a request for each text.";
    throw new Fault("unsupported_value", { message, param: "text_1" });
  }
  const body = { query, documents: [value.text_2].flat() };
  return { model: value.model, stream: false, body, ignored, form: {} };
}
