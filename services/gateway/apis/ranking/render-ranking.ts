import { Fault } from "#shared/fault/fault.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/answer-parts.ts";
import type { RankingTerms } from "./rerank-request.ts";

/** Returns the fields of an answer that tell the scores, which are in the order of the documents. */
type ScoreFields = (scores: readonly number[], head: AnswerHead) => object;

/** Gathers the scores of documents, and renders them once all are there. */
export function scoredDocuments(head: AnswerHead, fieldsOf: ScoreFields): AnswerRenderer {
  let scores: readonly number[] = [];
  let tokens = 0;
  return {
    push(events) {
      for (const event of events) {
        if (event.kind === "usage") tokens = event.promptTokens;
        if (event.kind === "scores") scores = event.scores;
      }
      return new Uint8Array();
    },
    end() {
      if (scores.length === 0) {
        const message = "The model's scores could not be understood.";
        throw new Fault("upstream_error", { message, internal: "there is no score" });
      }
      const { id, model } = head;
      const usage = { prompt_tokens: tokens, total_tokens: tokens };
      return Buffer.from(JSON.stringify({ id, object: "list", model, usage, ...fieldsOf(scores, head) }));
    },
  };
}

/** The documents in the order of their scores, the most relevant first, in the shape of Jina's and Cohere's API. */
export function rankingBy({ topN, documents }: RankingTerms): ScoreFields {
  return (scores) => {
    // The sort is stable, so equal scores keep the order of the documents.
    const sorted = [...scores.entries()].toSorted(([, one], [, other]) => other - one);
    const results = sorted.slice(0, topN).map(([index, score]) => ({
      index,
      relevance_score: score,
      ...(documents !== undefined && { document: { text: documents[index] } }),
    }));
    return { results };
  };
}

/** The scores in the order of the documents, in the shape of vLLM's API. */
export const scoreList: ScoreFields = (scores, { createdSeconds: created }) => ({
  created,
  data: scores.map((score, index) => ({ index, object: "score", score })),
});
