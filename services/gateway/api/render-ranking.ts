import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { AnswerHead, AnswerRenderer } from "../jobs/answer-course.ts";
import type { RankingTerms } from "./rerank-request.ts";

/** Returns the fields of an answer that tell the scores, which are in the order of the documents. */
type ScoreFields = (scores: readonly number[], head: AnswerHead) => object;

/** Gathers the scores of documents, and renders them once all are there. */
export class ScoredDocuments implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #fieldsOf: ScoreFields;
  #scores: readonly number[] = [];
  #promptTokens = 0;

  constructor(head: AnswerHead, fieldsOf: ScoreFields) {
    this.#head = head;
    this.#fieldsOf = fieldsOf;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) {
      if (event.kind === "usage") this.#promptTokens = event.promptTokens;
      if (event.kind === "scores") this.#scores = event.scores;
    }
    return new Uint8Array();
  }

  end(): Uint8Array {
    if (this.#scores.length === 0) {
      const message = "The model's scores could not be understood.";
      throw new Fault("upstream_error", { message, internal: "there is no score" });
    }
    const usage = { prompt_tokens: this.#promptTokens, total_tokens: this.#promptTokens };
    const { id, model } = this.#head;
    const fields = this.#fieldsOf(this.#scores, this.#head);
    return Buffer.from(JSON.stringify({ id, object: "list", model, usage, ...fields }));
  }
}

/** The documents in the order of their scores, the most relevant first, in the shape of Jina's and Cohere's API. */
export function rankingBy({ topN, documents }: RankingTerms = {}): ScoreFields {
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
