import { z } from "zod";
import { modelId } from "#shared/protocol/model.ts";
import { type RankBody, rerankDocumentsMax } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../http/read-shape.ts";
import { dropNulls } from "./request-fields.ts";

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

/** The parts of a request to rerank that its answer needs; `documents` only if the answer repeats them. */
export interface RankingTerms {
  readonly topN?: number | undefined;
  readonly documents?: readonly string[] | undefined;
}

export interface ReadRerankRequest {
  readonly model: string;
  readonly body: RankBody;
  readonly ignored: readonly string[];
  readonly ranking: RankingTerms;
}

/** Reads a request to rerank and translates it to the job body. */
export function readRerankRequest(input: Record<string, unknown>): ReadRerankRequest {
  dropNulls(input);
  const { value, ignored } = readShape(rerankRequest, input);
  const { model, query, top_n: topN, return_documents: repeats } = value;
  const documents = value.documents.map((each) => (typeof each === "string" ? each : each.text));
  const ranking = { topN: topN ?? undefined, documents: repeats === true ? documents : undefined };
  return { model, body: { query, documents }, ignored, ranking };
}
