import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";

/** A response, whole or streamed: a chat in the words of OpenAI's newer API, of which nothing is kept. */
export function postResponses(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/responses", async (request, reply) => {
    const admitted = await admitRequest("response", { request, reply }, means);
    await (admitted.streamed ? answerStream(admitted, means) : answerWhole(admitted, means));
  });
}
