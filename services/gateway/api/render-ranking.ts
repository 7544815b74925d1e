import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { AnswerHead, AnswerRenderer } from "../jobs/answer-course.ts";
import type { RankingTerms } from "./rerank-request.ts";

/** Renders documents in the order of their scores, the most relevant first, in the shape of Jina's and Cohere's API. */
export class Ranking implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #terms: RankingTerms;
  #scores: readonly number[] = [];
  #promptTokens = 0;

  constructor(head: AnswerHead, terms: RankingTerms = {}) {
    this.#head = head;
    this.#terms = terms;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) {
      if (event.kind === "usage") this.#promptTokens = event.promptTokens;
      if (event.kind === "scores") this.#scores = event.scores;
    }
    return new Uint8Array();
  }

  end(): Uint8Array {
    const { topN, documents } = this.#terms;
    if (this.#scores.length === 0) {
      const message = "The model's scores could not be understood.";
      throw new Fault("upstream_error", { message, internal: "there is no score" });
    }
    // The sort is stable, so equal scores keep the order of the documents.
    const sorted = [...this.#scores.entries()].toSorted(([, one], [, other]) => other - one);
    const results = sorted.slice(0, topN).map(([index, score]) => ({
      index,
      relevance_score: score,
      ...(documents !== undefined && { document: { text: documents[index] } }),
    }));
    const usage = { prompt_tokens: this.#promptTokens, total_tokens: this.#promptTokens };
    const { id, model } = this.#head;
    return Buffer.from(JSON.stringify({ id, object: "list", model, usage, results }));
  }
}
