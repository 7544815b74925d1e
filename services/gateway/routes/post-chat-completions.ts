import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { takeBody } from "./take-body.ts";

/** A chat completion, whole or streamed: one job on one machine. */
export function postChatCompletions(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/chat/completions", async (request, reply) => {
    const asked = await means.reader.read("chat", takeBody(request));
    const admitted = await admitRequest({ request, reply }, asked, means);
    await (asked.stream ? answerStream(admitted, means) : answerWhole(admitted, means));
  });
}
