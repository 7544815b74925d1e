import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import { estimatePromptTokens } from "../runtime-faults.ts";
import type { RerankRun, Runtime } from "../runtime.ts";
import { passesProbe } from "./openai-models.ts";

const path = "/v1/rerank";
const tokens = z.int().nonnegative().nullish();

/** The answer of llama-server, vLLM and others: Jina's shape, with the results in any order. */
const rerankAnswer = z.object({
  results: z.array(z.object({ index: z.int().nonnegative(), relevance_score: z.number() })),
  usage: z.object({ prompt_tokens: tokens, total_tokens: tokens }).nullish(),
});

/** Scores documents on `/v1/rerank`. Tokens that the server does not report are estimated. */
export async function openAiRerank(
  { body: { query, documents }, traceparent, signal }: RerankRun,
  { connection, model }: { readonly connection: RuntimeConnection; readonly model: { readonly name: string } },
): ReturnType<NonNullable<Runtime["rerank"]>> {
  const question = { model: model.name, query, documents, top_n: documents.length };
  const { results, usage } = await connection.ask(rerankAnswer, { path, body: question, traceparent, signal });
  const byIndex = new Map(results.map(({ index, relevance_score: score }) => [index, score]));
  const scores = documents.flatMap((_, index) => byIndex.get(index) ?? []);
  if (scores.length !== documents.length) {
    throw new Fault("upstream_error", { message: "The runtime did not answer with one score for each document." });
  }
  const estimate = documents.reduce((sum, each) => sum + estimatePromptTokens({ query, documents: [each] }), 0);
  return { scores, promptTokens: usage?.prompt_tokens || usage?.total_tokens || estimate };
}

/** Returns true if the model reranks. Rejects if the server is busy or loads its model. */
export function probeRerank(connection: RuntimeConnection, model: string, signal: AbortSignal): Promise<boolean> {
  const body = { model, query: "a", documents: ["a"] };
  return passesProbe(connection, rerankAnswer, { path, body, signal });
}
