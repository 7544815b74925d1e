import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#shared/process/clock.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/token.ts";
import { mayUse } from "../access/authorize.ts";
import { callerOf } from "../access/caller.ts";
import type { JobPlacer, Placement } from "../dispatch/place-job.ts";
import { modelNotFound } from "../dispatch/rank-machines.ts";
import type { Render } from "../dispatch/render-events.ts";
import type { StreamEnds } from "../dispatch/write-stream.ts";
import type { Asked } from "../asked/asked.ts";
import type { ReadAside } from "../asked/read-aside.ts";
import type { Outer } from "../asked/read-asked.ts";
import { ignoredHeader } from "../openai/ignored-header.ts";
import { renderResponse } from "../openai/responses/output/render-response.ts";
import { endsOfChunks } from "../openai/stream-ends.ts";
import type { RequestAccount } from "../settlement/request-account.ts";
import { accountOf } from "./keep-accounts.ts";
import { takeBody } from "./take-body.ts";
import { noteStanding } from "./tell-standing.ts";

/** A request that may run: all of its placement that does not depend on how the answer is sent, and who waits for it. */
export interface Admitted {
  readonly reply: FastifyReply;
  readonly leaving: AbortController;
  readonly account: RequestAccount;
  readonly job: Omit<Placement, "listener">;
  readonly streamed: boolean;
  /** How the stream of its API ends. */
  readonly ends: StreamEnds;
  /** A fault of its run, in the words of its API. */
  readonly told: (fault: Fault) => Fault;
}

/** Machines render what comes in chunks. */
const chunks = { render: undefined, ends: endsOfChunks, told: (fault: Fault) => fault } as const;

/**
 * Reads a request and takes it through all that comes before its run, or throws what it ends in: its shape, the scopes of its
 * key, a machine that can take it, and last the key's limits, so that what cannot run takes nothing.
 */
export async function admitRequest(
  outer: Outer,
  from: { readonly request: FastifyRequest<{ Body: Buffer | undefined }>; readonly reply: FastifyReply },
  means: { readonly reader: ReadAside; readonly placer: JobPlacer; readonly clock: Clock },
): Promise<Admitted> {
  const { request, reply } = from;
  // Whoever runs the request does not have this, and with it the body.
  const read = means.reader.read(outer, takeBody(request));
  const asked = read instanceof Promise ? await read : read;
  const { key, leaving } = callerOf(request);
  const { model, promptTokens, tokens, stream: streamed, terms } = asked;
  const account = accountOf(request);
  account.asksFor(model, { streamed });
  if (!mayUse(key, model)) throw modelNotFound(model);
  const ignored = ignoredHeader(asked.ignored);
  if (ignored !== undefined) reply.header("x-trunkline-ignored", ignored);
  const { render, ends, told } = terms === undefined ? chunks : renderResponse(terms, { streamed });
  const job = jobOf(request, asked, { render, clock: means.clock });
  // Nearly always there is one, and nothing to wait for.
  if (!means.placer.hasTaker(job)) await means.placer.insistOnTaker(job);
  const asking = account.admit({ promptTokens, tokens, signal: job.signal });
  const { standing, fault } = asking instanceof Promise ? await asking : asking;
  noteStanding(request, standing);
  if (fault !== undefined) throw fault;
  return { reply, leaving, account, job, streamed, ends, told };
}

function jobOf(
  request: FastifyRequest,
  asked: Asked,
  { render, clock }: { readonly render: Render | undefined; readonly clock: Clock },
): Admitted["job"] {
  const { key, leaving } = callerOf(request);
  const { kind, shape, model: modelId, needs, body, sha256, idPrefix, includeUsage } = asked;
  const traceparent = traceparentOf(request);
  return {
    kind,
    shape,
    render,
    modelId,
    needs,
    keyId: key.id,
    machines: key.machines,
    body,
    sha256,
    responseId: newToken(idPrefix),
    createdSeconds: Math.floor(clock.wall() / 1_000),
    includeUsage,
    traceparent,
    requestId: request.id,
    signal: leaving.signal,
  };
}

/** A caller's own trace, in the form that W3C gave it; anything else is none. */
function traceparentOf({ headers: { traceparent } }: FastifyRequest): string | undefined {
  const isOne = typeof traceparent === "string" && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent);
  return isOne ? traceparent : undefined;
}
