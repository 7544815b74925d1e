import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";

/** Serves responses, whole or streamed: chats in the form of OpenAI's newer API. No response is stored. */
export function postResponses(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/responses", async (request, reply) => {
    const admitted = await admitRequest("response", { request, reply }, means);
    await (admitted.streamed ? answerStream(admitted, means) : answerWhole(admitted, means));
  });
}
