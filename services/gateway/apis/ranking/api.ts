import { plainRendering } from "../../chats/render-completions.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeRanking } from "./describe.ts";
import { rankingBy, scoredDocuments, scoreList } from "./render-ranking.ts";
import type { RankingTerms } from "./rerank-request.ts";

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
