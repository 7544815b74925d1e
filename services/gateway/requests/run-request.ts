import type { IncomingHttpHeaders } from "node:http";
import { formBoundary } from "../http/guard-edge.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { bodyWithImages } from "../images/image-fetcher.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import { nameIgnored } from "./ignored-fields.ts";
import type { ReadRequest } from "./read-request.ts";
import { pricesOf } from "./request-prices.ts";
import { RequestWork } from "./request-work.ts";
import { resolveModel } from "./resolve-model.ts";
import { resumableHeader } from "./resumable-answer.ts";
import { sendAnswer } from "./send-answer.ts";

interface RunTerms {
  /** Sends the answer; it ends with its client unless given. */
  readonly send?: typeof sendAnswer;
  /** The request as it was read, if it was. */
  readonly asked?: ReadRequest | undefined;
}

/**
 * Runs a request, the plain way: it is read, its model is resolved, a machine can take it, its key is admitted, a job is
 * offered to one machine after the other, its answer is sent, and it is settled. A request that cannot run uses up no limit
 * of its key.
 */
export async function runRequest(
  exchange: ModelExchange,
  dependencies: InferenceDependencies,
  { send = sendAnswer, asked: given }: RunTerms = {},
): Promise<void> {
  const { endpoint, reply, request, leaving } = exchange;
  const { runner, clock } = dependencies;
  const asked = given ?? (await readBody(exchange, dependencies));
  take(exchange, asked, dependencies);
  await runner.assertTaker(request.work, request, leaving.signal);
  const count = endpoint.countOf?.(asked);
  if (count !== undefined) {
    const { fault } = await request.admitCount(leaving.signal);
    if (fault !== undefined) throw fault;
    const answer = await count(exchange, dependencies);
    request.endedIn("ok");
    return void reply.send(answer);
  }
  await admit(exchange, asked, dependencies);
  const made = { answer: newToken(endpoint.idPrefix), created: Math.floor(clock.wall() / 1_000) };
  return send(exchange, { asked, made, run: (signal) => runner.run(request, signal) }, dependencies);
}

/** Resolves the model that a request asks for within the scopes of its key, and takes the request for its machines. */
export function take(
  { endpoint, incoming, reply, request }: ModelExchange,
  asked: ReadRequest,
  { modelRoutes, images, cacheSaltOf }: InferenceDependencies,
): void {
  const { stream: streamed, remoteImages } = asked;
  const { key } = request;
  if (remoteImages !== undefined) images.assertAllowed(remoteImages);
  const routes = modelRoutes.table;
  const model = endpoint.meantModel?.(asked.model, key, routes) ?? asked.model;
  request.asksFor({ model, streamed });
  const { targets, routed, routedTo } = resolveModel(model, key, routes);
  if (routed !== undefined) request.asksFor({ model, streamed, routed, routedTo });
  const ignored = withIgnoredHeaders(asked.ignored, incoming.headers, streamed && endpoint.isResumable === true);
  if (ignored.length > 0) nameIgnored(reply, ignored);
  const traceparent = incoming.state.trace.parentOf(incoming.headers);
  const terms = { keyId: key.id, targets, cacheSalt: cacheSaltOf?.(key), traceparent, ignored };
  request.takes(new RequestWork(asked, terms));
}

/** Anthropic's clients name features of its service here, and models need none of them. */
const betaHeader = "anthropic-beta";

/** Returns the ignored fields of a request, with those of its headers that mean nothing for its answer. */
function withIgnoredHeaders(
  fields: readonly string[],
  headers: IncomingHttpHeaders,
  isResumable: boolean,
): readonly string[] {
  const hasNone = headers[betaHeader] === undefined && (isResumable || headers[resumableHeader] === undefined);
  if (hasNone) return fields;
  const meaningless = isResumable ? [betaHeader] : [betaHeader, resumableHeader];
  return [...fields, ...meaningless.filter((header) => header in headers)];
}

/** Asks the limits of the key, and then fetches the images of the request. */
async function admit(
  { endpoint, incoming, request, leaving }: ModelExchange,
  asked: ReadRequest,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { promptTokens, tokens, ceiling, remoteImages } = asked;
  const demanded = { promptTokens, tokens, ceiling, ...endpoint.costOf?.(asked, request.books, dependencies) };
  const priced = { ...demanded, targets: request.work.targets, size: endpoint.sizeOf?.(asked) };
  const rate = pricesOf(priced, dependencies.prices.table);
  const { limitStatus, fault } = await request.admit({ ...demanded, rate }, leaving.signal);
  incoming.state.limitStatus = limitStatus;
  if (fault !== undefined) throw fault;
  if (remoteImages === undefined) return;
  const images = await dependencies.images.fetchAll(remoteImages, leaving.signal);
  request.work.changeBody(await bodyWithImages(request.work.body, remoteImages, images));
}

/** Reads the body of a request, with the stored texts that it names, and for whom it is. */
export async function readBody(exchange: ModelExchange, dependencies: InferenceDependencies): Promise<ReadRequest> {
  const { endpoint, incoming, request, leaving } = exchange;
  const { body } = incoming;
  // The run alone keeps the bytes from now on.
  incoming.body = undefined;
  const owner = { sender: request.key.id, signal: leaving.signal };
  const boundary = endpoint.takesForm === true ? formBoundary(incoming.headers) : undefined;
  try {
    const stored = body && (await endpoint.lookUp?.(body, exchange, dependencies));
    const asked = await dependencies.reader.read(endpoint.kind, body, { stored, boundary, ...owner });
    return await dependencies.endUsers.enter(request, incoming.headers, asked);
  } finally {
    incoming.state.arriving?.leave();
  }
}
