import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#shared/process/clock.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { mayUse, needsExactId } from "../keys/authenticate.ts";
import { callerOf } from "../keys/prove-callers.ts";
import type { AnswerHead, AnswerRenderer } from "../jobs/render-answer.ts";
import { rendererFor, type AnswerShape } from "./answer-shape.ts";
import type { Needs } from "../fleet/choose-machine.ts";
import type { Placement } from "../jobs/place-job.ts";
import { modelNotFound } from "../fleet/rank-machines.ts";
import type { StreamEnds } from "../jobs/write-answer.ts";
import type { Outer, ReadRequest } from "./read-request.ts";
import { ignoredHeader, noteRateLimits } from "./answer-headers.ts";
import { renderResponse } from "./responses/render-response.ts";
import { endsOfChunks } from "./answer-renderer.ts";
import type { RequestAccount } from "./request-account.ts";
import type { InferenceMeans } from "./routes.ts";
import { accountOf } from "./keep-accounts.ts";

/** A request that may run: its reply, and the part of its placement that is the same for streamed and whole answers. */
export interface Admitted {
  readonly reply: FastifyReply;
  readonly leaving: AbortController;
  readonly account: RequestAccount;
  readonly job: Omit<Placement, "listener">;
  readonly streamed: boolean;
  /** How a stream ends in the request's API. */
  readonly ends: StreamEnds;
  /** Rewrites a fault of the run for the request's API. */
  readonly told: (fault: Fault) => Fault;
}

/**
 * Reads a request and makes all checks that come before its run, or throws the fault that it ends in. The checks are
 * its shape, the scopes of its key, a machine that can take it, and last the key's limits. A request that cannot run
 * therefore uses up no limit.
 */
export async function admitRequest(
  outer: Outer,
  from: { readonly request: FastifyRequest<{ Body: Buffer | undefined }>; readonly reply: FastifyReply },
  means: Pick<InferenceMeans, "reader" | "placer" | "clock" | "cacheSaltOf">,
): Promise<Admitted> {
  const { request, reply } = from;
  // `takeBody` removes the body from the request, so that the run does not keep it in memory.
  const read = means.reader.read(outer, takeBody(request));
  const asked = read instanceof Promise ? await read : read;
  const { key, leaving } = callerOf(request);
  const { model, promptTokens, tokens, ceiling, stream: streamed, terms } = asked;
  const account = accountOf(request);
  account.asksFor(model, { streamed });
  if (!mayUse(key, model)) throw modelNotFound(model);
  const ignored = ignoredHeader(asked.ignored);
  if (ignored !== undefined) reply.header("x-trunkline-ignored", ignored);
  const { render, ends, told } = terms === undefined ? renderPlain(asked.shape) : renderResponse(terms, { streamed });
  const job = jobOf(request, asked, { render, clock: means.clock, cacheSalt: means.cacheSaltOf?.(key) });
  // Nearly always a machine can take the job, and there is nothing to wait for.
  if (!means.placer.hasTaker(job)) await means.placer.insistOnTaker(job);
  const asking = account.admit({ promptTokens, tokens, ceiling, signal: job.signal });
  const { standing, fault } = asking instanceof Promise ? await asking : asking;
  noteRateLimits(request, standing);
  if (fault !== undefined) throw fault;
  return { reply, leaving, account, job, streamed, ends, told };
}

/** The rendering of answers that need nothing of their request but its shape. */
function renderPlain(shape: AnswerShape) {
  return {
    render: (head: AnswerHead): AnswerRenderer => rendererFor(shape, head),
    ends: endsOfChunks,
    told: (fault: Fault): Fault => fault,
  };
}

function jobOf(
  request: FastifyRequest,
  asked: ReadRequest,
  {
    render,
    clock,
    cacheSalt,
  }: {
    readonly render: (head: AnswerHead) => AnswerRenderer;
    readonly clock: Clock;
    readonly cacheSalt: string | undefined;
  },
): Admitted["job"] {
  const { key, leaving } = callerOf(request);
  const { kind, stream, model: modelId, needs, body, sha256, idPrefix, includeUsage } = asked;
  const answer = { id: newToken(idPrefix), createdSeconds: Math.floor(clock.wall() / 1_000), includeUsage };
  const traceparent = traceparentOf(request);
  return {
    kind,
    whole: !stream,
    render: (model) => render({ ...answer, model }),
    modelId,
    isExact: needsExactId(key, modelId),
    needs: cacheSalt === undefined ? needs : ownedBy(key.id, needs),
    keyId: key.id,
    cacheSalt,
    machines: key.machines,
    body,
    sha256,
    traceparent,
    requestId: request.id,
    signal: leaving.signal,
  };
}

/** Returns the same needs with prefixes that match no other key's. */
function ownedBy(keyId: string, needs: Needs): Needs {
  return needs.prefixes === undefined ? needs : { ...needs, prefixes: { ...needs.prefixes, keyId } };
}

/** Returns the client's own trace in the W3C form; undefined for anything else. */
function traceparentOf({ headers: { traceparent } }: FastifyRequest): string | undefined {
  const isOne = typeof traceparent === "string" && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent);
  return isOne ? traceparent : undefined;
}

/** Returns the body of a request and removes it there, so that the request does not keep its bytes. */
export function takeBody(request: FastifyRequest<{ Body: Buffer | undefined }>): Buffer | undefined {
  const { body } = request;
  request.body = undefined;
  return body;
}
