import { z } from "zod";
import { plainRendering } from "../../chats/render-completions.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { count, text } from "../answer-parts.ts";
import { listOf } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";
import { rankingBy, scoredDocuments, scoreList } from "./render-ranking.ts";
import { type RankingTerms, rerankRequest, scoreRequest } from "./rerank-request.ts";

const document = z.object({ text }).optional();
const rankedDocument = z.object({ index: count, relevance_score: z.number(), document });
const ranking = listOf({ id: text, results: z.array(rankedDocument) });
const scored = z.object({ index: count, object: z.literal("score"), score: z.number() });
const scores = listOf({ id: text, created: z.int(), data: z.array(scored) });

const documents = ["Grass is green.", "Air scatters blue."];
const describeRanking: ApiDescription = {
  tag: "Rerank",
  schemas: [{ rerankRequest, scoreRequest, ranking, scoreList: scores }],
  operations: [
    post("rerank", "rerank", [rerankRequest, ranking], {
      examples: { best: example("Two documents", { ...sample.embedder, query: sample.why, documents }) },
    }),
    post("score", "score", [scoreRequest, scores], {
      examples: { two: example("Two texts", { ...sample.embedder, text_1: sample.why, text_2: documents }) },
    }),
  ],
};

/** A request for scores is a request to rerank, whose answer keeps the order of the documents. */
const sentNames = { query: "text_1", documents: "text_2" };

/** Rankings in the way of Jina and Cohere, and scores in that of vLLM. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeRanking],
  endpoints: [
    {
      kind: "rerank",
      path: "/rerank",
      aliases: ["/rerank", "/v2/rerank"],
      idPrefix: "rerank-",
      rendering: ({ form }: ReadRequest<RankingTerms>) =>
        plainRendering((head) => scoredDocuments(head, rankingBy(form))),
    },
    {
      kind: "score",
      path: "/score",
      idPrefix: "score-",
      rendering: () => plainRendering((head) => scoredDocuments(head, scoreList), sentNames),
    },
  ],
};
