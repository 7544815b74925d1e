import { Fault } from "#shared/fault/fault.ts";
import { sleep } from "#shared/process/clock.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits as protocolLimits } from "#shared/protocol/limits.ts";
import type { Placement } from "../jobs/place-job.ts";
import { formBoundary } from "../http/framing-fault.ts";
import { readJsonObject } from "../http/read-json.ts";
import { callerOf } from "../keys/authenticate.ts";
import { stateOf } from "../http/request-state.ts";
import type { Needs } from "../routing/choose-machine.ts";
import type { AnswerPlace } from "../jobs/resume-answer.ts";
import type { Endpoint, InferenceDependencies, Rendering } from "./endpoint.ts";
import type { ReadRequest } from "./read-request.ts";
import { type ResolvedModel, resolveModel } from "./resolve-model.ts";
import { accountOf } from "./keep-accounts.ts";
import { bodyWithImages } from "../images/image-fetcher.ts";
import type { ClaimName } from "../jobs/answer-claims.ts";
import { digestOf, lostJob, OnceClaim, onceName, replayedHeader } from "./made-once.ts";
import { asksResumable, resumesAnswer, NumberedEvents, resumableHeader, resumedPlace } from "./resumable-answer.ts";
import { failStream, nameIgnored, sendAnswer, streamOf } from "./run-answer.ts";
import type { Admitted } from "./run-answer.ts";
import { noteRateLimits } from "./limit-responses.ts";

/** A request that a machine can take, before it is admitted under its key's limits. */
interface Placeable extends Pick<Admitted, "account" | "job" | "ignored"> {
  readonly asked: ReadRequest;
}

interface RequestFrom {
  readonly request: FastifyRequest<{ Body: Buffer | undefined }>;
  readonly reply: FastifyReply;
  /** The request as it was read, if it was. */
  readonly read?: ReadRequest | undefined;
}

/**
 * Reads a request and makes all checks that come before its key's limits, or throws the fault that it ends in. The
 * checks are its shape, the scopes of its key, and a machine that can take it.
 */
async function placeableRequest(
  endpoint: Endpoint,
  { request, reply, read }: RequestFrom,
  dependencies: InferenceDependencies,
): Promise<Placeable> {
  // `takeBody` removes the body from the request, so that the run does not keep it in memory.
  const asked = read ?? (await readBody(endpoint, request, dependencies));
  const { stream: streamed, remoteImages } = asked;
  if (remoteImages !== undefined) dependencies.images.assertAllowed(remoteImages);
  const { key } = callerOf(request);
  const account = accountOf(request);
  const routes = dependencies.modelRoutes.table;
  const model = endpoint.meantModel?.(asked.model, key, routes) ?? asked.model;
  account.asksFor(model, { streamed });
  const resolved = resolveModel(model, key, routes);
  if (resolved.routed !== undefined) account.routedTo(resolved.first.modelId);
  const meaningless = streamed && endpoint.isResumable === true ? [betaHeader] : [betaHeader, resumableHeader];
  const ignored = [...asked.ignored, ...meaningless.filter((header) => header in request.headers)];
  nameIgnored(reply, ignored);
  const job = jobOf(request, { asked, resolved }, dependencies.cacheSaltOf?.(key));
  await dependencies.placer.assertTaker(job);
  return { asked, account, job, ignored };
}

/** Returns the handler of a route that asks a model for something. */
export function answerRequest(endpoint: Endpoint, dependencies: InferenceDependencies) {
  return async (request: RequestFrom["request"], reply: FastifyReply): Promise<void> => {
    const resumes = endpoint.isResumable === true ? resumedPlace(request.headers) : undefined;
    const from = { request, reply };
    if (resumes !== undefined)
      return sendAnswer(await resumedRequest(endpoint, { ...from, resumes }, dependencies), dependencies);
    const once = endpoint.isResumable === true ? onceName(request.headers, callerOf(request).key.id) : undefined;
    if (once !== undefined) return answerOnce(endpoint, { ...from, once }, dependencies);
    const placeable = await placeableRequest(endpoint, { request, reply }, dependencies);
    const { asked, account, job } = placeable;
    const count = endpoint.countOf?.(asked);
    if (count !== undefined) {
      const { fault } = await account.admitCount(job.signal);
      if (fault !== undefined) throw fault;
      const answer = await count(job, reply, dependencies);
      account.endedIn("ok");
      return void reply.send(answer);
    }
    const admitted = await admitRequest(endpoint, { request, reply, placeable }, dependencies);
    return sendAnswer(admitted, dependencies);
  };
}

/**
 * Answers a request whose answer is made once. The first request of the name makes it. Each later one with the same body
 * waits while a client before it is there, and then gets the same answer from its machine.
 */
async function answerOnce(
  endpoint: Endpoint,
  { request, reply, once }: RequestFrom & { readonly once: ClaimName },
  dependencies: InferenceDependencies,
): Promise<void> {
  const { body } = request;
  const digest = digestOf(endpoint.kind, body ?? "");
  const { leaving } = callerOf(request);
  const { timing, clock, resumer, log } = dependencies;
  const claim = new OnceClaim(once, { owner: request.id, digest }, dependencies);
  const staysMs = timing.onceForMs;
  let read: ReadRequest | undefined = await readBody(endpoint, request, dependencies);
  const { stream: streamed } = read;
  const { ends, adaptFault } = endpoint.rendering(read, request.id);
  const account = accountOf(request);
  account.isOnce = true;
  const writer = streamOf({ reply, leaving, ends }, dependencies);
  const { arriving } = stateOf(request);
  const sinceMs = clock.now();
  let toldAtMs = sinceMs + timing.statusHeldMs - timing.commentIntervalMs;
  const wait = async (): Promise<void> => {
    const nowMs = clock.now();
    if (streamed && nowMs - toldAtMs >= timing.commentIntervalMs) {
      reply.header(replayedHeader, "true");
      writer.tell("waiting for the request that has this Idempotency-Key already");
      toldAtMs = nowMs;
    }
    await sleep(clock, Math.min(Math.max((nowMs - sinceMs) / 10, lookMs), lookMs * 10), leaving.signal);
  };
  const make = async (): Promise<void> => {
    const placeable = await placeableRequest(endpoint, { request, reply, read }, dependencies);
    // The placer alone keeps the body while the answer runs.
    read = undefined;
    const admitted = await admitRequest(endpoint, { request, reply, placeable, isOnce: true }, dependencies);
    const onPlaced: Placement["onPlaced"] = (place) => void claim.placed(place);
    Object.assign(admitted.job, { onPlaced });
    return sendAnswer({ staysMs, ...admitted }, dependencies);
  };
  const join = async (place: AnswerPlace): Promise<void> => {
    reply.header(replayedHeader, "true");
    const joined = await resumedRequest(endpoint, { request, reply, read, resumes: place }, dependencies);
    return sendAnswer({ ...joined, staysMs }, dependencies);
  };
  /** Makes the answer or joins it. Returns false if its machine has to be looked for again. */
  const answer = async (isLast: boolean): Promise<boolean> => {
    arriving?.grow(body?.byteLength ?? 0);
    const taken = await claim.take(wait);
    const isGone = taken !== undefined && (taken.job === lostJob || !(await resumer.isThere(taken, wait)));
    arriving?.leave();
    const place = isGone ? undefined : taken;
    if (isGone) account.anewAfter = taken.machine;
    try {
      await (place === undefined ? make() : join(place));
    } catch (thrown) {
      const { code } = Fault.from(thrown);
      const isMissing = place !== undefined && code === "answer_not_found";
      const isAway = place !== undefined && code === "agent_offline";
      const { machine } = (isMissing && place) || account.facts.answer || {};
      if (!isAway && !claim.outlasts(code)) await claim.release(machine);
      if (isLast || !(isMissing || isAway)) throw thrown;
      reply.removeHeader(replayedHeader);
      return false;
    }
    const { facts, hasMoved } = account;
    if (!hasMoved && claim.outlasts(facts.outcome)) return true;
    const isMade = facts.outcome === "ok" && !hasMoved;
    await (isMade ? claim.made() : claim.release(facts.answer?.machine));
    return true;
  };
  leaving.signal.addEventListener("abort", () => claim.leave(), { once: true });
  try {
    for (let left = repeatsMax; !(await answer(left === 0)); left -= 1);
  } catch (thrown) {
    if (!writer.begun) throw thrown;
    failStream({ reply, account }, { writer, fault: adaptFault(Fault.from(thrown)), log });
  } finally {
    claim.leave();
  }
}

/** Time between two looks for another request or a machine; longer after a while, up to ten times. */
const lookMs = 100;

/** How often a request finds an answer gone before it gives up. */
const repeatsMax = 3;

/**
 * Reads a request that resumes an answer, with the body by which the answer was asked for. It was admitted then, so it is
 * not admitted again. Its machine judges whether the answer is of its key.
 */
async function resumedRequest(
  endpoint: Endpoint,
  { request, reply, read, resumes }: RequestFrom & { readonly resumes: AnswerPlace },
  dependencies: InferenceDependencies,
): Promise<Admitted> {
  const asked = read ?? (await readBody(endpoint, request, dependencies));
  stateOf(request).resumeRead?.();
  const { stream: streamed } = asked;
  if (!streamed && resumesAnswer(request.headers))
    throw new Fault("invalid_value", { message: "An answer is resumed as a stream.", param: "stream" });
  const isNumbered = resumesAnswer(request.headers) || (streamed && asksResumable(request.headers));
  const { key, leaving } = callerOf(request);
  const account = accountOf(request);
  account.asksFor(asked.model, { streamed });
  const resolved = resolveModel(asked.model, key, dependencies.modelRoutes.table);
  if (resolved.routed !== undefined) account.routedTo(resolved.first.modelId);
  const job = { ...jobOf(request, { asked, resolved }, undefined), body: new Uint8Array() };
  leaving.signal.throwIfAborted();
  account.resumes(asked.ceiling);
  const { effort } = asked;
  const ignored = [...asked.ignored];
  nameIgnored(reply, ignored);
  const rendered = renderedFor(reply, { endpoint, asked, job, ignored, from: isNumbered ? resumes.event : undefined });
  if (isNumbered) reply.header(resumableHeader, "1");
  return {
    reply,
    leaving,
    account,
    job,
    streamed,
    ...rendered,
    ignored,
    effort,
    resumes,
    staysMs: dependencies.timing.resumableForMs,
  };
}

/** Makes all checks that come before a request runs. A request that cannot run uses up no limit of its key. */
async function admitRequest(
  endpoint: Endpoint,
  {
    request,
    reply,
    placeable,
    isOnce = false,
  }: RequestFrom & { readonly placeable: Placeable; readonly isOnce?: boolean },
  dependencies: InferenceDependencies,
): Promise<Admitted> {
  const { asked, account, job, ignored } = placeable;
  const { promptTokens, tokens, ceiling, stream: streamed, effort, remoteImages } = asked;
  const { leaving } = callerOf(request);
  const cost = endpoint.costOf?.(asked, callerOf(request).key, dependencies);
  const demand = { promptTokens, tokens, ceiling, ...cost, signal: job.signal };
  const { limitStatus, fault } = await account.admit(demand);
  noteRateLimits(request, limitStatus);
  if (fault !== undefined) throw fault;
  // An answer that may end at a limit of its key comes in pieces, so that its client gets what came until then.
  if (account.mayGrow) Object.assign(job, { whole: false });
  if (remoteImages !== undefined) {
    const images = await dependencies.images.fetchAll(remoteImages, job.signal);
    Object.assign(job, await bodyWithImages(job.body, remoteImages, images));
  }
  const made = { answer: newToken(endpoint.idPrefix), created: Math.floor(dependencies.clock.wall() / 1_000) };
  const isResumable = streamed && endpoint.isResumable === true && asksResumable(request.headers);
  if (isResumable) reply.header(resumableHeader, "1");
  if (isResumable || isOnce) Object.assign(job, { resumable: made });
  const rendered = renderedFor(reply, { endpoint, asked, job, ignored, made, from: isResumable ? 0 : undefined });
  const staysMs = isResumable ? dependencies.timing.resumableForMs : undefined;
  return { reply, leaving, account, job, streamed, ...rendered, ignored, effort, ...(isResumable && { staysMs }) };
}

/** Returns the rendering of an answer in the words of its client, with numbered events behind `from` if that is given. */
function renderedFor(
  reply: FastifyReply,
  parts: Omit<Placeable, "account"> & {
    readonly endpoint: Endpoint;
    readonly made?: Pick<ResumedAnswer, "answer" | "created">;
    readonly from: number | undefined;
  },
): Pick<Admitted, keyof Rendering> {
  const { endpoint, asked, job, ignored, made, from } = parts;
  const { render, ...rendering } = endpoint.rendering(asked, reply.request.id);
  return {
    ...rendering,
    render: (by, offer, resumed) => {
      const unheld = rendering.unheldBy?.(offer);
      if (unheld) nameIgnored(reply, [...ignored, ...unheld]);
      const { answer: id = "", created: createdSeconds = 0 } = resumed ?? made ?? {};
      const renderer = render({ id, createdSeconds, model: job.routed ?? by }, offer);
      return from === undefined ? renderer : new NumberedEvents(renderer, offer, from);
    },
  };
}

/** Anthropic's clients name features of its service here, and models need none of them. */
const betaHeader = "anthropic-beta";

function jobOf(
  request: FastifyRequest,
  { asked, resolved }: { readonly asked: ReadRequest; readonly resolved: ResolvedModel },
  cacheSalt: string | undefined,
): Admitted["job"] {
  const { key, leaving } = callerOf(request);
  const account = accountOf(request);
  const { kind, stream, needs, body, sha256, tellsStop } = asked;
  const { first, fallbacks, routed } = resolved;
  const traceparent = traceparentOf(request);
  return {
    kind,
    whole: !stream,
    modelId: first.modelId,
    isExact: first.isExact,
    machines: first.machines,
    external: first.external,
    fallbacks,
    routed,
    needs: cacheSalt === undefined ? needs : ownedBy(key.id, needs),
    keyId: key.id,
    cacheSalt,
    tellsStop,
    body,
    sha256,
    traceparent,
    requestId: request.id,
    signal: leaving.signal,
    assertMayLoad: (load) => account.assertMayLoad(load),
  };
}

/** Returns the same needs with a prompt that matches no other key's. */
function ownedBy(keyId: string, needs: Needs): Needs {
  return needs.prompt === undefined ? needs : { ...needs, prompt: { ...needs.prompt, keyId } };
}

/** Returns the client's own trace in the W3C form; undefined for anything else. */
function traceparentOf({ headers: { traceparent } }: FastifyRequest): string | undefined {
  const isOne = typeof traceparent === "string" && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent);
  return isOne ? traceparent : undefined;
}

/** Reads the body of a request, with the stored texts that it names. */
async function readBody(
  endpoint: Endpoint,
  request: RequestFrom["request"],
  dependencies: InferenceDependencies,
): Promise<ReadRequest> {
  const body = takeBody(request);
  const { key, leaving } = callerOf(request);
  const owner = { sender: key.id, signal: leaving.signal };
  try {
    const stored = body && (await endpoint.lookUp?.(body, request, dependencies));
    return await dependencies.reader.read(endpoint.kind, body, { stored, boundary: boundaryIn(request), ...owner });
  } finally {
    stateOf(request).arriving?.leave();
  }
}

/** Refuses a model that is not there before stored texts are read for it. A large body is not parsed twice for that. */
export async function assertModel(
  body: Buffer,
  request: FastifyRequest,
  { placer, modelRoutes }: InferenceDependencies,
): Promise<void> {
  const model = body.byteLength > protocolLimits.partBytes ? undefined : readJsonObject(body)["model"];
  if (typeof model !== "string") return;
  const { key, leaving } = callerOf(request);
  accountOf(request).asksFor(model, { streamed: false });
  const { first, fallbacks, routed } = resolveModel(model, key, modelRoutes.table);
  const needs = { capability: "completion", tools: false, imageParam: undefined } as const;
  await placer.assertTaker({ ...first, fallbacks, routed, kind: "chat", needs, signal: leaving.signal });
}

/** Returns the boundary of a request's form; undefined on a route that takes JSON. */
function boundaryIn({ routeOptions, headers }: FastifyRequest): string | undefined {
  return routeOptions.config.takesForm === true ? formBoundary(headers) : undefined;
}

/** Returns the body of a request and removes it there, so that the request does not keep its bytes. */
function takeBody(request: RequestFrom["request"]): Buffer | undefined {
  const { body } = request;
  request.body = undefined;
  return body;
}
