import type { FastifyInstance } from "fastify";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobPlacer } from "../dispatch/place-job.ts";
import { estimateContinued } from "../limits/estimate-tokens.ts";
import { readCompletionRequest, type ReadCompletionRequest } from "../openai/completion-request.ts";
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

/** Texts that are continued as they are, whole or streamed: the older form of a chat, in one job on one machine. */
export function postCompletions(server: FastifyInstance, parts: Parts): void {
  server.post<{ Body: Buffer | undefined }>("/completions", async (request, reply) => {
    const completion = readCompletionRequest(takeBody(request));
    const admitted = await admitRequest({ request, reply }, askedOf(completion), parts);
    return completion.stream
      ? answerStream(admitted, { ...parts, shape: "text-stream" })
      : answerWhole(admitted, { ...parts, shape: "text-whole" });
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
