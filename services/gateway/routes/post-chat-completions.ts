import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { faultEntry } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { mayUse } from "../access/authorize.ts";
import { callerOf } from "../access/caller.ts";
import { collectAnswer } from "../dispatch/collect-answer.ts";
import { modelNotFound, type JobPlacer, type Placement } from "../dispatch/place-job.ts";
import { StreamWriter } from "../dispatch/write-stream.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { ignoredHeader } from "../openai/ignored-header.ts";
import { readJsonObject } from "../openai/read-json.ts";
import { estimatePrompt, estimateTokens } from "../limits/estimate-tokens.ts";
import type { RequestAccount } from "../settlement/request-account.ts";
import { accountOf } from "./keep-accounts.ts";
import { tellStanding } from "./tell-standing.ts";

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
    const { key, leaving } = callerOf(request);
    if (!mayUse(key, chat.model)) throw modelNotFound(chat.model);
    const ignored = ignoredHeader(chat.ignored);
    if (ignored !== undefined) reply.header("x-trunkline-ignored", ignored);
    const account = accountOf(request);
    account.asksFor(chat.model);
    const job = jobOf({ request, chat, clock: parts.clock });
    await parts.placer.insistOnTaker({ ...job, signal: leaving.signal });
    await admit({ reply, chat, account, signal: leaving.signal });
    const answering = { reply, leaving, account, parts, job };
    return chat.stream ? await stream(answering) : await whole(answering);
  });
}

/** All of a placement that does not depend on how the answer is sent. */
type ChatJob = Omit<Placement, "shape" | "listener" | "signal">;

async function admit(asking: {
  readonly reply: FastifyReply;
  readonly chat: ReadChatRequest;
  readonly account: RequestAccount;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { reply, chat, account, signal } = asking;
  const [promptTokens, tokens] = [estimatePrompt(chat.body), estimateTokens(chat.body)];
  const { standing, fault } = await account.admit({ promptTokens, tokens, signal });
  tellStanding(reply, standing);
  if (fault !== undefined) throw fault;
}

interface Answering {
  readonly reply: FastifyReply;
  readonly leaving: AbortController;
  readonly account: RequestAccount;
  readonly parts: Parts;
  readonly job: ChatJob;
}

async function whole({ reply, leaving, account, parts, job }: Answering): Promise<FastifyReply> {
  const collected = collectAnswer((fault) => leaving.abort(fault));
  const listener = account.following(collected);
  await parts.placer.run(Object.assign(job, { shape: "chat-whole", listener, signal: leaving.signal }));
  account.endedIn("ok");
  return reply.type("application/json; charset=utf-8").send(collected.bytes());
}

async function stream({ reply, leaving, account, parts, job }: Answering): Promise<FastifyReply> {
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

function jobOf({ request, chat, clock }: { request: FastifyRequest; chat: ReadChatRequest; clock: Clock }): ChatJob {
  const { key } = callerOf(request);
  const traceparent = request.headers["traceparent"];
  return {
    kind: "chat",
    modelId: chat.model,
    needs: { tools: chat.body.tools !== undefined, imageParam: chat.imageParam },
    keyId: key.id,
    machines: key.machines,
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
