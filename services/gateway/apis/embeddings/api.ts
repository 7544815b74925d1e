import { plainRendering } from "../../chats/render-completions.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeEmbeddings } from "./describe.ts";
import type { VectorFormat } from "./embeddings-request.ts";
import { embeddingList } from "./render-embeddings.ts";

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
