import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { mayUse } from "../access/authorize.ts";
import { keyOf } from "../access/key-of.ts";
import { collectAnswer } from "../dispatch/collect-answer.ts";
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
  readonly log: Log;
}

/** A chat completion, whole or streamed: one job on one machine. */
export function postChatCompletions(server: FastifyInstance, parts: Parts): void {
  server.post<{ Body: Buffer | undefined }>("/chat/completions", async (request, reply) => {
    const chat = readChatRequest(readJsonObject(takeBody(request)));
    if (!mayUse(keyOf(request), chat.model)) throw modelNotFound(chat.model);
    const ignored = ignoredHeader(chat.ignored);
    if (ignored !== undefined) reply.header("x-trunkline-ignored", ignored);
    const leaving = untilClientLeaves(reply.raw);
    const answering = { reply, leaving, parts, job: jobOf({ request, chat, clock: parts.clock }) };
    return chat.stream ? await stream(answering) : await whole(answering);
  });
}

/** All of a placement that does not depend on how the answer is sent. */
type ChatJob = Omit<Placement, "shape" | "listener" | "signal">;

interface Answering {
  readonly reply: FastifyReply;
  readonly leaving: AbortController;
  readonly parts: Parts;
  readonly job: ChatJob;
}

async function whole({ reply, leaving, parts, job }: Answering): Promise<FastifyReply> {
  const listener = collectAnswer((fault) => leaving.abort(fault));
  await parts.placer.run(Object.assign(job, { shape: "chat-whole", listener, signal: leaving.signal }));
  return reply.type("application/json; charset=utf-8").send(listener.bytes());
}

async function stream({ reply, leaving, parts, job }: Answering): Promise<FastifyReply> {
  const response = reply.raw;
  const writer = new StreamWriter({ response, timing: parts.timing, onBacklog: (fault) => leaving.abort(fault) });
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) response.setHeader(name, value);
  try {
    await parts.placer.run(Object.assign(job, { shape: "chat-stream", listener: writer, signal: leaving.signal }));
  } catch (thrown) {
    const fault = Fault.from(thrown);
    if (!writer.begun) throw fault;
    const fields = { request: reply.request.id, code: fault.code, internal: fault.internal };
    if (fault.code === "client_closed") parts.log.debug(fields, "stream left by its client");
    else parts.log.warn(fields, "stream failed");
    reply.hijack();
    if (fault.code === "slow_client") response.destroy();
    else writer.fail(fault);
    return reply;
  }
  reply.hijack();
  writer.end();
  return reply;
}

function jobOf({ request, chat, clock }: { request: FastifyRequest; chat: ReadChatRequest; clock: Clock }): ChatJob {
  const traceparent = request.headers["traceparent"];
  return {
    kind: "chat",
    modelId: chat.model,
    needs: { tools: chat.body.tools !== undefined, imageParam: chat.imageParam },
    keyId: keyOf(request).id,
    body: encodeJson(chat.body),
    responseId: `chatcmpl-${newToken()}`,
    createdSeconds: Math.floor(clock.wall() / 1_000),
    includeUsage: chat.includeUsage,
    traceparent: typeof traceparent === "string" ? traceparent.slice(0, 100) : undefined,
  };
}

/** The bytes of the body, which nobody else keeps from here on. */
function takeBody(request: FastifyRequest<{ Body: Buffer | undefined }>): Buffer | undefined {
  const { body } = request;
  request.body = undefined;
  return body;
}
