import type { FastifyInstance, FastifyReply } from "fastify";
import { faultEntry } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobPlacer } from "../dispatch/place-job.ts";
import { StreamWriter } from "../dispatch/write-stream.ts";
import { estimatePrompt, estimateTokens } from "../limits/estimate-tokens.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { admitRequest, type Admitted, type Asked } from "./admit-request.ts";
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
    if (chat.stream) return stream(admitted, parts);
    return answerWhole(admitted, { shape: "chat-whole", placer: parts.placer });
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

async function stream({ reply, leaving, account, job }: Admitted, parts: Parts): Promise<FastifyReply> {
  const response = reply.raw;
  const writer = new StreamWriter({ response, timing: parts.timing, onBacklog: (fault) => leaving.abort(fault) });
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) response.setHeader(name, value);
  try {
    const listener = account.following(writer);
    await parts.placer.run(Object.assign(job, { shape: "chat-stream", listener, signal: leaving.signal }));
  } catch (thrown) {
    const fault = Fault.from(thrown);
    account.endedIn(fault.code);
    if (!writer.begun) throw fault;
    const fields = { request: reply.request.id, code: fault.code, internal: fault.internal };
    if (faultEntry(fault.code).status < 500) parts.log.debug(fields, "stream ended by its client or its key");
    else parts.log.warn(fields, "stream failed");
    reply.hijack();
    if (fault.code === "slow_client") response.destroy();
    else writer.fail(fault);
    return reply;
  }
  account.endedIn("ok");
  reply.hijack();
  writer.end();
  return reply;
}
