import type { FastifyInstance } from "fastify";
import { newToken } from "#shared/protocol/token.ts";
import { estimateContinued } from "../limits/estimate-tokens.ts";
import { readCompletionRequest, type ReadCompletionRequest } from "../openai/completion-request.ts";
import { admitRequest, type Asked } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { takeBody } from "./take-body.ts";

/** Texts that are continued as they are, whole or streamed: the older form of a chat, in one job on one machine. */
export function postCompletions(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/completions", async (request, reply) => {
    const completion = readCompletionRequest(takeBody(request));
    const admitted = await admitRequest({ request, reply }, askedOf(completion), means);
    return completion.stream
      ? answerStream(admitted, { ...means, shape: "text-stream" })
      : answerWhole(admitted, { ...means, shape: "text-whole" });
  });
}

function askedOf({ model, body, includeUsage, ignored }: ReadCompletionRequest): Asked {
  return {
    kind: "complete",
    model,
    needs: { capability: "completion", tools: false, imageParam: undefined },
    body,
    ignored,
    responseId: `cmpl-${newToken()}`,
    includeUsage,
    ...estimateContinued(body),
  };
}
