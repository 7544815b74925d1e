import { z } from "zod";
import { embeddingsRequest } from "./embeddings-request.ts";
import { count } from "../answer-parts.ts";
import { listOf } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";

const embedding = z.object({
  object: z.literal("embedding"),
  index: count.describe("The number of the text, from 0."),
  embedding: z.union([z.array(z.number()), z.string()]),
});
const embeddingList = listOf({ data: z.array(embedding) });

export const describeEmbeddings: ApiDescription = {
  tag: "Embeddings",
  schemas: [{ embeddingsRequest, embedding, embeddingList }],
  operations: [
    post("createEmbedding", "embeddings", [embeddingsRequest, embeddingList], {
      examples: {
        text: example("One text", { ...sample.embedder, input: "The sky is blue." }),
        texts: example("Several texts, in the smaller form", { ...sample.texts, encoding_format: "base64" }),
      },
    }),
  ],
};
