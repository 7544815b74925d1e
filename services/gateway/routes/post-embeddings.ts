import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { takeBody } from "./take-body.ts";

/** The vectors of one or many texts: one job on one machine, always answered whole. */
export function postEmbeddings(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/embeddings", async (request, reply) => {
    const asked = await means.reader.read("embeddings", takeBody(request));
    const admitted = await admitRequest({ request, reply }, asked, means);
    await answerWhole(admitted, means);
  });
}
