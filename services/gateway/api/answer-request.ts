import type { Timing } from "#shared/protocol/timing.ts";
import type { RouteRecords } from "../fleet/route-records.ts";
import type { RefusedEfforts } from "./messages/message-request.ts";
import type { Log } from "#shared/process/log.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { addReplyHeaders, TimedResponse, writeWhole } from "../http/timed-response.ts";
import { logFieldsOf, stateOf } from "../http/request-state.ts";
import { machineHeader, modelHeader, StreamWriter, CollectedAnswer } from "../jobs/write-answer.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { callerOf } from "../keys/authenticate.ts";
import type { AnswerCourse, AnswerHead, AnswerRenderer, AnswerWriter } from "../jobs/answer-course.ts";
import type { Needs } from "../routing/choose-machine.ts";
import type { JobOffer } from "../jobs/job-listener.ts";
import type { AnswerPlace, AnswerResumer } from "../jobs/resume-answer.ts";
import type { ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { JobPlacer } from "../jobs/place-job.ts";
import { type Placement } from "../jobs/place-job.ts";
import type { RequestReader } from "./read-request.ts";
import { type AskedEffort, jobBody, type Outer, type ReadRequest, type AnswerShape } from "./read-request.ts";
import { type ResolvedModel, resolveModel, withoutLatest } from "./resolve-model.ts";
import { loadedAnswer, renderOllama } from "./ollama/render-ollama.ts";
import { renderMessage } from "./messages/render-message.ts";
import { renderResponse } from "./responses/render-response.ts";
import { type RequestAccount, accountOf } from "./request-account.ts";
import { chatCompletion, ChatChunks, endsOfChunks, type Rendering } from "./render-chat.ts";
import { faultWithSentNames } from "./runtime-fields.ts";
import type { OllamaTerms } from "./ollama/ollama-request.ts";
import type { ImageFetcher } from "../images/image-fetcher.ts";
import { bodyWithImages } from "../images/image-fetcher.ts";
import { withClientNames } from "./request-tools.ts";
import { EmbeddingList } from "./render-embeddings.ts";
import { textCompletion, TextChunks } from "./render-text.ts";
import { asksResumable, NumberedEvents, resumableHeader, resumedPlace, stayingSignal } from "./resumable-answer.ts";
import { noteRateLimits, rateLimitLines } from "./limit-responses.ts";

/** A request that may run: its reply, and the part of its placement that is the same for streamed and whole answers. */
interface Admitted extends Omit<Rendering, "render"> {
  readonly reply: FastifyReply;
  readonly leaving: AbortController;
  readonly account: RequestAccount;
  /** One object to the end, since the placer releases the body in it: a copy would keep the body while the answer runs. */
  readonly job: Omit<Placement, "listener">;
  readonly streamed: boolean;
  /** Creates the renderer of an answer by this model. Another machine's answer to the same request is rendered anew. */
  readonly render: (model: string, offer: JobOffer, resumed?: ResumedAnswer) => AnswerRenderer;
  readonly ignored: readonly string[];
  /** The effort of the request, when the job may run without it. */
  readonly effort: AskedEffort | undefined;
  /** The place after which the client resumes an answer, in place of a new one. */
  readonly resumes?: AnswerPlace | undefined;
}

/** A request that a machine can take, before it is admitted under its key's limits. */
export interface Placeable extends Pick<Admitted, "account" | "job" | "ignored"> {
  readonly asked: ReadRequest;
}

interface RequestFrom {
  readonly request: FastifyRequest<{ Body: Buffer | undefined }>;
  readonly reply: FastifyReply;
}

export type PlacingDependencies = Pick<
  InferenceDependencies,
  "reader" | "placer" | "modelRoutes" | "images" | "clock" | "cacheSaltOf"
>;

/**
 * Reads a request and makes all checks that come before its key's limits, or throws the fault that it ends in. The
 * checks are its shape, the scopes of its key, and a machine that can take it.
 */
export async function placeableRequest(
  outer: Outer,
  { request, reply }: RequestFrom,
  dependencies: PlacingDependencies,
): Promise<Placeable> {
  // `takeBody` removes the body from the request, so that the run does not keep it in memory.
  const asked = await dependencies.reader.read(outer, takeBody(request));
  const { stream: streamed, remoteImages } = asked;
  if (remoteImages !== undefined) dependencies.images.assertAllowed(remoteImages);
  const { key } = callerOf(request);
  const account = accountOf(request);
  const routes = dependencies.modelRoutes.table;
  const model = asked.ollama === undefined ? asked.model : withoutLatest(asked.model, key, routes);
  account.asksFor(model, { streamed });
  const resolved = resolveModel(model, key, routes);
  if (resolved.routed !== undefined) account.routedTo(resolved.first.modelId);
  const ignored = [...asked.ignored, ...(betaHeader in request.headers ? [betaHeader] : [])];
  nameIgnored(reply, ignored);
  const job = jobOf(request, { asked, resolved }, dependencies.cacheSaltOf?.(key));
  await dependencies.placer.assertTaker(job);
  return { asked, account, job, ignored };
}

/** Returns the handler of a route that asks a model for something. */
export function answerRequest(outer: Outer, dependencies: InferenceDependencies) {
  return async (request: RequestFrom["request"], reply: FastifyReply): Promise<void> => {
    const resumes = chatLike.has(outer) ? resumedPlace(request.headers) : undefined;
    if (resumes !== undefined)
      return answerStream(await resumedRequest(outer, { request, reply, resumes }, dependencies), dependencies);
    const placeable = await placeableRequest(outer, { request, reply }, dependencies);
    const { ollama } = placeable.asked;
    if (ollama?.loads) return answerLoad(ollama, placeable, { reply, clock: dependencies.clock });
    const admitted = await admitRequest(outer, { request, reply, placeable }, dependencies);
    return admitted.streamed ? answerStream(admitted, dependencies) : answerWhole(admitted, dependencies);
  };
}

/** Answers a request of Ollama's API that only loads a model. It takes one of the requests of its key, as a count does. */
async function answerLoad(
  terms: OllamaTerms,
  { account, job }: Placeable,
  { reply, clock }: { readonly reply: FastifyReply; readonly clock: Clock },
): Promise<void> {
  const { fault } = await account.admitCount(job.signal);
  if (fault !== undefined) throw fault;
  account.endedIn("ok");
  reply.send(loadedAnswer(terms, clock.wall()));
}

/** The APIs whose streams can be resumed: those that are read as chats. */
const chatLike: ReadonlySet<Outer> = new Set(["chat", "message", "response"]);

/**
 * Reads a request that resumes an answer, with the body by which the answer was asked for. It was admitted then, so it is
 * not admitted again. Its machine judges whether the answer is of its key.
 */
async function resumedRequest(
  outer: Outer,
  { request, reply, resumes }: RequestFrom & { readonly resumes: AnswerPlace },
  dependencies: PlacingDependencies,
): Promise<Admitted> {
  const asked = await dependencies.reader.read(outer, takeBody(request));
  if (!asked.stream)
    throw new Fault("invalid_value", { message: "An answer is resumed as a stream.", param: "stream" });
  const { key, leaving } = callerOf(request);
  const account = accountOf(request);
  account.asksFor(asked.model, { streamed: true });
  const resolved = resolveModel(asked.model, key, dependencies.modelRoutes.table);
  if (resolved.routed !== undefined) account.routedTo(resolved.first.modelId);
  const job = jobOf(request, { asked, resolved }, undefined);
  const { ignored, effort, includeUsage } = asked;
  nameIgnored(reply, ignored);
  const { render, ends, adaptFault } = renderingOf(outer, asked, request.id);
  const renderFor: Admitted["render"] = (by, offer, resumed) => {
    const { answer: id = "", created: createdSeconds = 0 } = resumed ?? {};
    const renderer = render({ id, createdSeconds, includeUsage, model: job.routed ?? by });
    return new NumberedEvents(withClientNames(renderer, asked.toolNames), offer, resumes.event);
  };
  reply.header(resumableHeader, "1");
  return {
    reply,
    leaving,
    account,
    job,
    streamed: true,
    render: renderFor,
    ends,
    adaptFault,
    ignored,
    effort,
    resumes,
  };
}

/** Makes all checks that come before a request runs. A request that cannot run uses up no limit of its key. */
async function admitRequest(
  outer: Outer,
  { request, reply, placeable }: RequestFrom & { readonly placeable: Placeable },
  dependencies: PlacingDependencies,
): Promise<Admitted> {
  const { asked, account, job, ignored } = placeable;
  const { promptTokens, tokens, ceiling, stream: streamed, toolNames, effort, remoteImages } = asked;
  const { leaving } = callerOf(request);
  const { render, ends, adaptFault } = renderingOf(outer, asked, request.id);
  const { limitStatus, fault } = await account.admit({ promptTokens, tokens, ceiling, signal: job.signal });
  noteRateLimits(request, limitStatus);
  if (fault !== undefined) throw fault;
  // An answer that may end at a limit of its key comes in pieces, so that its client gets what came until then.
  if (account.mayGrow) Object.assign(job, { whole: false });
  if (remoteImages !== undefined) {
    const images = await dependencies.images.fetchAll(remoteImages, job.signal);
    Object.assign(job, await bodyWithImages(job.body, remoteImages, images));
  }
  const { idPrefix, includeUsage } = asked;
  const answer = {
    id: newToken(idPrefix),
    createdSeconds: Math.floor(dependencies.clock.wall() / 1_000),
    includeUsage,
  };
  const { routed } = job;
  const isResumable = streamed && chatLike.has(outer) && asksResumable(request.headers);
  if (isResumable) {
    Object.assign(job, { resumable: { answer: answer.id, created: answer.createdSeconds } });
    reply.header(resumableHeader, "1");
  }
  const renderFor: Admitted["render"] = (by, offer) => {
    const renderer = withClientNames(render({ ...answer, model: routed ?? by }), toolNames);
    return isResumable ? new NumberedEvents(renderer, offer) : renderer;
  };
  return { reply, leaving, account, job, streamed, render: renderFor, ends, adaptFault, ignored, effort };
}

/** Names the limit of the key that ended an answer: in the headers of a whole answer, in a comment of a stream. */
const limitHeader = "x-trunkline-limit";

/** Anthropic's clients name features of its service here, and models need none of them. */
const betaHeader = "anthropic-beta";

function nameIgnored(reply: FastifyReply, ignored: readonly string[]): void {
  const names = ignoredHeader(ignored);
  if (names !== undefined) reply.header("x-trunkline-ignored", names);
}

/** The rendering of an answer for its API. Most need little of their request: its shape, and its names in faults. */
function renderingOf(outer: Outer, asked: ReadRequest, requestId: string): Rendering {
  const { shape, terms, ollama, sentNames = {}, stream: streamed } = asked;
  if (ollama !== undefined) return renderOllama(ollama, { streamed });
  if (outer === "message") return renderMessage({ streamed, requestId });
  if (terms !== undefined) return renderResponse(terms, { streamed });
  return {
    render: (head) => rendererFor(shape, head),
    ends: endsOfChunks,
    adaptFault: (fault) => faultWithSentNames(fault, sentNames),
  };
}

/**
 * Runs the job of a request. A job whose model or runtime lacks an effort that may be left out runs once more without
 * it, and the answer names the field as ignored.
 */
async function runJob(
  admitted: Admitted,
  listener: AnswerCourse,
  { placer, resumer, refusedEfforts }: RunDependencies,
): Promise<void> {
  const { job, effort, resumes: place } = admitted;
  if (place !== undefined) {
    await resumer.run({ place, keyId: job.keyId, course: listener, signal: job.signal });
    return;
  }
  if (effort === undefined || !refusedEfforts.has(job.modelId, effort.value)) {
    try {
      await placer.run(Object.assign(job, { listener }));
      return;
    } catch (thrown) {
      const lacksEffort = thrown instanceof Fault && thrown.param === "reasoning_effort";
      if (effort === undefined || !lacksEffort) throw thrown;
      refusedEfforts.note(job.modelId, effort.value);
    }
  }
  nameIgnored(admitted.reply, [...admitted.ignored, effort.field]);
  const { reasoning_effort: _, ...body } = JSON.parse(Buffer.from(job.body).toString()) as ChatBody;
  await placer.run(Object.assign(job, { listener }, jobBody(body)));
}

/**
 * Runs the job of a request to its end, or to the end of what the limits of its key have left. The answer then ends as
 * at `max_tokens`, after `tell` has told the limit.
 */
async function runWithinLimits(
  admitted: Admitted,
  { writer, tell }: { readonly writer: AnswerWriter; readonly tell: (limit: string) => void },
  dependencies: RunDependencies,
): Promise<void> {
  const { account, reply, render, leaving, job, streamed } = admitted;
  try {
    const mayContinue = streamed && job.kind === "chat";
    await runJob(admitted, account.following(writer, { render, leaving, mayContinue }), dependencies);
  } catch (thrown) {
    const limit = account.cutBy;
    if (limit === undefined) throw thrown;
    stateOf(reply.request).reason = `the answer ended at a limit of its key (${limit})`;
    tell(limit);
    account.endShort();
  }
}

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

/** Returns the body of a request and removes it there, so that the request does not keep its bytes. */
function takeBody(request: RequestFrom["request"]): Buffer | undefined {
  const { body } = request;
  request.body = undefined;
  return body;
}

/** The renderers of answers, by the name of the shape. */
const shapes = {
  "chat-stream": (head) => new ChatChunks(head),
  "chat-whole": chatCompletion,
  "text-stream": (head) => new TextChunks(head),
  "text-whole": textCompletion,
  "embeddings-float": (head) => new EmbeddingList(head, "float"),
  "embeddings-base64": (head) => new EmbeddingList(head, "base64"),
} as const satisfies Record<AnswerShape, (head: AnswerHead) => AnswerRenderer>;

export const answerShapes = Object.freeze(Object.keys(shapes)) as readonly AnswerShape[];

export function rendererFor(shape: AnswerShape, head: AnswerHead): AnswerRenderer {
  return shapes[shape](head);
}

/**
 * Runs a request and sends its answer piece by piece. A failure before the first piece is thrown, and becomes an answer
 * with a status. A later failure is reported inside the stream.
 */
async function answerStream(
  admitted: Admitted,
  { placer, resumer, refusedEfforts, timing, log }: InferenceDependencies,
): Promise<void> {
  const { reply, leaving, account, job, ends, adaptFault } = admitted;
  // The job of a resumable answer outlives its client for a while.
  const isResumable = job.resumable !== undefined || admitted.resumes !== undefined;
  if (isResumable) Object.assign(job, { signal: stayingSignal(leaving.signal, timing.resumableForMs) });
  const response = reply.raw;
  const writer = new StreamWriter({
    response,
    ends,
    timing,
    headers: () => {
      const lines = rateLimitLines(reply.request);
      addReplyHeaders(lines, reply);
      return lines;
    },
    onAccept: (machine, model) => nameSource(reply, { machine, model, routed: job.routed }),
    onSlow: (fault) => leaving.abort(fault),
  });
  try {
    const tell = (limit: string): void => writer.tell(`${limitHeader}: ${limit}`);
    const running = runWithinLimits(admitted, { writer, tell }, { placer, resumer, refusedEfforts });
    if (isResumable) account.staysUntil(running);
    await running;
  } catch (thrown) {
    const fault = adaptFault(Fault.from(thrown));
    account.endedIn(fault.code);
    stateOf(reply.request).reason = fault.reason;
    if (!writer.begun) throw fault;
    const fields = { ...logFieldsOf(reply.request), code: fault.code, internal: fault.reason };
    if (faultEntry(fault.code).status < 500) log.debug(fields, "stream ended by its client or its key");
    else log.warn(fields, "stream failed");
    reply.hijack();
    if (fault.code === "slow_client") response.destroy();
    else writer.fail(fault);
    return;
  }
  account.endedIn("ok");
  reply.hijack();
  if (!response.destroyed) writer.end();
}

/** Names the machine that answers in the headers, and the model if it has another name than the client asked for. */
function nameSource(
  reply: FastifyReply,
  { machine, model, routed }: { readonly machine: string; readonly model: string; readonly routed: string | undefined },
): void {
  void reply.header(machineHeader, machine);
  // The characters of a model's id are not bound to those of a header.
  if (routed !== undefined) void reply.header(modelHeader, encodeURI(model));
}

/** Runs a request and sends its answer in one piece, once the answer is complete. */
async function answerWhole(admitted: Admitted, dependencies: InferenceDependencies): Promise<void> {
  const { reply, leaving, account, job, adaptFault } = admitted;
  const collected = new CollectedAnswer({
    onTooLarge: (fault) => leaving.abort(fault),
    onAccept: (machine, model) => nameSource(reply, { machine, model, routed: job.routed }),
    onGrow: (bytes) => {
      if (reply.raw instanceof TimedResponse) reply.raw.keptBytes = bytes;
    },
  });
  try {
    const tell = (limit: string): void => void reply.header(limitHeader, limit);
    await runWithinLimits(admitted, { writer: collected, tell }, dependencies);
  } catch (thrown) {
    throw adaptFault(Fault.from(thrown));
  }
  account.endedIn("ok");
  const lines = rateLimitLines(reply.request);
  lines.push("content-type", "application/json; charset=utf-8");
  writeWhole(reply, lines, collected.bytes());
}

const nameCharactersMax = 100;

/**
 * Returns the names of ignored fields as a header value, or undefined when there are none. The client chooses the
 * names, so they are encoded.
 */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  return namedShortly(ignored.map((name) => encode(name.slice(0, nameCharactersMax))));
}

function encode(name: string): string {
  return name.replace(/[^\w.[\]-]+/g, (odd) => `%${Buffer.from(odd).toString("hex").match(/../g)?.join("%") ?? ""}`);
}

const bytesMax = 1_024;

/**
 * Joins names into a header value: as many as fit into `bytesMax`, then the number of the others. Clients refuse long
 * headers.
 */
export function namedShortly(names: readonly string[]): string {
  let value = "";
  for (const [place, name] of names.entries()) {
    const next = place === 0 ? name : `${value},${name}`;
    if (next.length > bytesMax)
      return value === "" ? `${names.length} names` : `${value},+${names.length - place} more`;
    value = next;
  }
  return value;
}

type RunDependencies = Pick<InferenceDependencies, "placer" | "resumer" | "refusedEfforts">;

export interface InferenceDependencies {
  readonly reader: RequestReader;
  readonly placer: JobPlacer;
  readonly resumer: AnswerResumer;
  readonly refusedEfforts: RefusedEfforts;
  readonly modelRoutes: Pick<RouteRecords, "table">;
  readonly images: Pick<ImageFetcher, "assertAllowed" | "fetchAll">;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Returns a key's salt for the caches of runtimes; absent when the operator lets keys share what machines have
   * cached.
   */
  readonly cacheSaltOf?: ((key: KeyRecord) => string) | undefined;
}
