import { newToken } from "#shared/protocol/identifiers.ts";
import { bodyWithImages } from "../images/image-fetcher.ts";
import type { Needs } from "../routing/choose-machine.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import { ignoredHeaders, nameIgnored } from "./ignored-fields.ts";
import { noteRateLimits } from "./limit-responses.ts";
import { readBody } from "./read-body.ts";
import type { ReadRequest } from "./read-request.ts";
import { resolveModel } from "./resolve-model.ts";
import { type Keeping, sendAnswer } from "./send-answer.ts";

interface RunTerms {
  /** Returns how the answer is kept; it ends with its client unless given. */
  readonly keeps?: (asked: ReadRequest) => Keeping;
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
  { keeps, asked: given }: RunTerms = {},
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
  const keeping = keeps?.(asked) ?? {};
  const made = { answer: newToken(endpoint.idPrefix), created: Math.floor(clock.wall() / 1_000) };
  if (keeping.staysMs !== undefined) request.canBeResumed(made);
  const run = (signal: AbortSignal): Promise<void> => runner.run(request, signal, keeping.given);
  return sendAnswer(exchange, { asked, made, run, keeping }, dependencies);
}

/** Resolves the model that a request asks for within the scopes of its key, and takes the request for its machines. */
export function take(
  { endpoint, incoming, reply, request }: ModelExchange,
  asked: ReadRequest,
  { modelRoutes, images, cacheSaltOf }: InferenceDependencies,
): void {
  const { stream: streamed, remoteImages, kind, needs, sha256, tellsStop, effort, body } = asked;
  const { key } = request;
  if (remoteImages !== undefined) images.assertAllowed(remoteImages);
  const routes = modelRoutes.table;
  const model = endpoint.meantModel?.(asked.model, key, routes) ?? asked.model;
  request.asksFor({ model, streamed });
  const { targets, ...routed } = resolveModel(model, key, routes);
  request.asksFor({ model, streamed, ...routed });
  const cacheSalt = cacheSaltOf?.(key);
  const owned = cacheSalt === undefined ? needs : ownedBy(key.id, needs);
  const ignored = [...asked.ignored, ...ignoredHeaders(incoming.headers, streamed && endpoint.isResumable === true)];
  request.takes({ targets, kind, needs: owned, streamed, sha256, tellsStop, effort, cacheSalt }, { body, ignored });
  nameIgnored(reply, ignored);
}

/** Returns the same needs with a prompt that matches no other key's. */
function ownedBy(keyId: string, needs: Needs): Needs {
  return needs.prompt === undefined ? needs : { ...needs, prompt: { ...needs.prompt, keyId } };
}

/** Asks the limits of the key, and then fetches the images of the request. */
async function admit(
  { endpoint, incoming, request, leaving }: ModelExchange,
  asked: ReadRequest,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { promptTokens, tokens, ceiling, remoteImages } = asked;
  const cost = endpoint.costOf?.(asked, request.key, dependencies);
  const { limitStatus, fault } = await request.admit({ promptTokens, tokens, ceiling, ...cost }, leaving.signal);
  noteRateLimits(incoming, limitStatus);
  if (fault !== undefined) throw fault;
  if (remoteImages === undefined) return;
  const images = await dependencies.images.fetchAll(remoteImages, leaving.signal);
  request.changeBody(await bodyWithImages(request.body, remoteImages, images));
}
