import type { FastifyInstance } from "fastify";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobPlacer } from "../dispatch/place-job.ts";
import { estimatePrompt, estimateTokens } from "../limits/estimate-tokens.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { admitRequest, type Asked } from "./admit-request.ts";
import { answerStream } from "./answer-stream.ts";
import { answerWhole } from "./answer-whole.ts";
import { takeBody } from "./take-body.ts";

interface Parts {
  readonly placer: JobPlacer;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/** A chat completion, whole or streamed: one job on one machine. */
export function postChatCompletions(server: FastifyInstance, parts: Parts): void {
  server.post<{ Body: Buffer | undefined }>("/chat/completions", async (request, reply) => {
    const chat = readChatRequest(takeBody(request));
    const admitted = await admitRequest({ request, reply }, askedOf(chat), parts);
    return chat.stream
      ? answerStream(admitted, { ...parts, shape: "chat-stream" })
      : answerWhole(admitted, { ...parts, shape: "chat-whole" });
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
