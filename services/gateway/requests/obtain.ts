import type { FastifyReply } from "fastify";
import { callerOf } from "../keys/authenticate.ts";
import type { Endpoint, ModelExchange, Incoming, InferenceDependencies } from "./endpoint.ts";
import { requestOf } from "./keep-accounts.ts";
import { idempotencyHeader } from "./made-once.ts";
import { answerOnce } from "./answer-once.ts";
import { resumeAnswer, sendResumable } from "./resume-request.ts";
import { lastEventHeader, resumableHeader, resumedPosition } from "./resumable-answer.ts";
import { runRequest } from "./run-request.ts";

/** Returns the handler of an endpoint that asks models for something. */
export function answerRequest(endpoint: Endpoint, dependencies: InferenceDependencies) {
  const obtain = endpoint.isResumable === true ? obtainKept : runRequest;
  return (incoming: Incoming, reply: FastifyReply): Promise<void> => {
    const { leaving } = callerOf(incoming);
    return obtain({ endpoint, incoming, reply, request: requestOf(incoming), leaving }, dependencies);
  };
}

/** Obtains an answer that may be kept for its client: by a new job, from the job that a client resumes, or made once. */
function obtainKept(exchange: ModelExchange, dependencies: InferenceDependencies): Promise<void> {
  const { headers } = exchange.incoming;
  if (headers[lastEventHeader] !== undefined)
    return resumeAnswer(exchange, { position: resumedPosition(headers) }, dependencies);
  if (headers[idempotencyHeader]) return answerOnce(exchange, dependencies);
  if (headers[resumableHeader] !== undefined) return runRequest(exchange, dependencies, { send: sendResumable });
  return runRequest(exchange, dependencies);
}
