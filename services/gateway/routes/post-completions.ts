import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";

/** Serves completions of plain texts, whole or streamed: the older form of a chat, in one job on one machine. */
export function postCompletions(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/completions", async (request, reply) => {
    const admitted = await admitRequest("completion", { request, reply }, means);
    await (admitted.streamed ? answerStream(admitted, means) : answerWhole(admitted, means));
  });
}
