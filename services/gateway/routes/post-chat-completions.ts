import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { mayUse } from "../access/authorize.ts";
import { keyOf } from "../access/key-of.ts";
import { collectAnswer } from "../dispatch/collect-answer.ts";
import type { JobListener } from "../dispatch/follow-frames.ts";
import { modelNotFound, type JobPlacer, type Placement } from "../dispatch/place-job.ts";
import { StreamWriter } from "../dispatch/write-stream.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { ignoredHeader } from "../openai/ignored-header.ts";
import { readJsonObject } from "../openai/read-json.ts";
import { untilClientLeaves } from "../dispatch/until-client-leaves.ts";

interface Parts {
  readonly placer: JobPlacer;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** A chat completion, whole or streamed: one job on one machine. */
export function postChatCompletions(server: FastifyInstance, parts: Parts): void {
  server.post<{ Body: Buffer }>("/chat/completions", async (request, reply) => {
    const chat = readChatRequest(readJsonObject(request.body));
    if (!mayUse(keyOf(request), chat.model)) throw modelNotFound(chat.model);
    const ignored = ignoredHeader(chat.ignored);
    if (ignored !== undefined) reply.header("x-trunkline-ignored", ignored);
    const leaving = untilClientLeaves(reply.raw);
    return chat.stream
      ? await stream({ request, reply, chat, leaving, parts })
      : await whole({ request, reply, chat, leaving, parts });
  });
}

interface Answering {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly chat: ReadChatRequest;
  readonly leaving: AbortController;
  readonly parts: Parts;
}

async function whole(answering: Answering): Promise<FastifyReply> {
  const { reply, leaving, parts } = answering;
  const answer = collectAnswer((fault) => leaving.abort(fault));
  await parts.placer.run(placementOf(answering, { shape: "chat-whole", listener: answer }));
  return reply.type("application/json; charset=utf-8").send(answer.bytes());
}

async function stream(answering: Answering): Promise<FastifyReply> {
  const { reply, leaving, parts } = answering;
  const response = reply.raw;
  const writer = new StreamWriter({ response, timing: parts.timing, onBacklog: (fault) => leaving.abort(fault) });
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) response.setHeader(name, value);
  try {
    await parts.placer.run(placementOf(answering, { shape: "chat-stream", listener: writer }));
  } catch (thrown) {
    const fault = Fault.from(thrown);
    if (!writer.begun) throw fault;
    reply.hijack();
    if (fault.code === "slow_client") response.destroy();
    else writer.fail(fault);
    return reply;
  }
  reply.hijack();
  writer.end();
  return reply;
}

function placementOf(answering: Answering, as: { shape: string; listener: JobListener }): Placement {
  const { request, chat, leaving, parts } = answering;
  const traceparent = request.headers["traceparent"];
  return {
    kind: "chat",
    shape: as.shape,
    modelId: chat.model,
    needs: { tools: chat.body.tools !== undefined, imageParam: chat.imageParam },
    keyId: keyOf(request).id,
    body: encodeJson(chat.body),
    responseId: `chatcmpl-${newToken()}`,
    createdSeconds: Math.floor(parts.clock.wall() / 1_000),
    includeUsage: chat.includeUsage,
    traceparent: typeof traceparent === "string" ? traceparent.slice(0, 100) : undefined,
    listener: as.listener,
    signal: leaving.signal,
  };
}
