import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";

/** Serves the vectors of one or many texts: one job on one machine, always answered whole. */
export function postEmbeddings(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/embeddings", async (request, reply) => {
    const admitted = await admitRequest("embeddings", { request, reply }, means);
    await answerWhole(admitted, means);
  });
}
