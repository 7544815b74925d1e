import type { FastifyInstance } from "fastify";
import { newToken } from "#shared/protocol/token.ts";
import { estimatePrompt, estimateTokens } from "../limits/estimate-tokens.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { admitRequest, type Asked } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import type { InferenceMeans } from "./inference-means.ts";
import { takeBody } from "./take-body.ts";

/** A chat completion, whole or streamed: one job on one machine. */
export function postChatCompletions(server: FastifyInstance, means: InferenceMeans): void {
  server.post<{ Body: Buffer | undefined }>("/chat/completions", async (request, reply) => {
    const chat = readChatRequest(takeBody(request));
    const admitted = await admitRequest({ request, reply }, askedOf(chat), means);
    return chat.stream
      ? answerStream(admitted, { ...means, shape: "chat-stream" })
      : answerWhole(admitted, { ...means, shape: "chat-whole" });
  });
}

function askedOf({ model, body, imageParam, includeUsage, ignored }: ReadChatRequest): Asked {
  return {
    kind: "chat",
    model,
    needs: { capability: "completion", tools: body.tools !== undefined, imageParam },
    body,
    ignored,
    responseId: `chatcmpl-${newToken()}`,
    includeUsage,
    promptTokens: estimatePrompt(body),
    tokens: estimateTokens(body),
  };
}
