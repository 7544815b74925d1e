import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";

/** Serves chat completions, whole or streamed: one job on one machine. */
export function postChatCompletions(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/chat/completions", async (request, reply) => {
    const admitted = await admitRequest("chat", { request, reply }, means);
    await (admitted.streamed ? answerStream(admitted, means) : answerWhole(admitted, means));
  });
}
