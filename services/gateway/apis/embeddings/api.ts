import { z } from "zod";
import { plainRendering } from "../../chats/render-completions.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { count, numbers, text } from "../answer-parts.ts";
import { listOf } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";
import { type VectorFormat, embeddingsRequest } from "./embeddings-request.ts";
import { embeddingList } from "./render-embeddings.ts";

const vector = z.union([numbers, text]);
const embedding = z.object({ object: z.literal("embedding"), index: count, embedding: vector });
const list = listOf({ data: z.array(embedding) });

const describeEmbeddings: ApiDescription = {
  tag: "Embeddings",
  schemas: [{ embeddingsRequest, embedding, embeddingList: list }],
  operations: [
    post("createEmbedding", "embeddings", [embeddingsRequest, list], {
      examples: {
        text: example("One text", { ...sample.embedder, input: "The sky is blue." }),
        texts: example("Several texts, in the smaller form", { ...sample.texts, encoding_format: "base64" }),
      },
    }),
  ],
};

/** OpenAI's embeddings. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeEmbeddings],
  endpoints: [
    {
      kind: "embeddings",
      path: "/embeddings",
      idPrefix: "embd-",
      rendering: ({ form }: ReadRequest<VectorFormat>) => plainRendering((head) => embeddingList(head, form)),
    },
  ],
};
