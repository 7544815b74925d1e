import { z } from "zod";
import { rerankRequest, scoreRequest } from "./rerank-request.ts";
import { count, text } from "../answer-parts.ts";
import { listOf } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";

const relevance = z.number().describe("The relevance: a higher score is more relevant.");
const id = text("The id of this answer.");
const rankedDocument = z.object({
  index: count.describe("The number of the document in the request, from 0."),
  relevance_score: relevance,
  document: z.object({ text: z.string() }).optional().describe("The document, with `return_documents` only."),
});
const ranking = listOf({ id, results: z.array(rankedDocument) });
const scored = z.object({ index: count, object: z.literal("score"), score: relevance });
const scoreList = listOf({ id, created: z.int(), data: z.array(scored) });

const documents = ["Grass is green.", "Air scatters blue."];
export const describeRanking: ApiDescription = {
  tag: "Rerank",
  schemas: [{ rerankRequest, scoreRequest, ranking, scoreList }],
  operations: [
    post("rerank", "rerank", [rerankRequest, ranking], {
      examples: { best: example("Two documents", { ...sample.embedder, query: sample.why, documents }) },
    }),
    post("score", "score", [scoreRequest, scoreList], {
      examples: { two: example("Two texts", { ...sample.embedder, text_1: sample.why, text_2: documents }) },
    }),
  ],
};
