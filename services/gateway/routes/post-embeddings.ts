import type { FastifyInstance } from "fastify";
import { newToken } from "#shared/protocol/token.ts";
import { estimateTexts } from "../limits/estimate-tokens.ts";
import { readEmbeddingsRequest, type ReadEmbeddingsRequest } from "../openai/embeddings-request.ts";
import { admitRequest, type Asked } from "./admit-request.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { takeBody } from "./take-body.ts";

/** The vectors of one or many texts: one job on one machine, always answered whole. */
export function postEmbeddings(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/embeddings", async (request, reply) => {
    const embeddings = readEmbeddingsRequest(takeBody(request));
    const admitted = await admitRequest({ request, reply }, askedOf(embeddings), means);
    return answerWhole(admitted, { ...means, shape: `embeddings-${embeddings.format}` });
  });
}

function askedOf({ model, body, ignored }: ReadEmbeddingsRequest): Asked {
  const tokens = estimateTexts(body.input);
  return {
    kind: "embed",
    model,
    needs: { capability: "embedding", tools: false, imageParam: undefined },
    body,
    ignored,
    responseId: `embd-${newToken()}`,
    includeUsage: true,
    promptTokens: tokens,
    tokens,
  };
}
