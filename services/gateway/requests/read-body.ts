import type { FastifyRequest } from "fastify";
import { limits } from "#shared/protocol/limits.ts";
import { formBoundary } from "../http/framing-fault.ts";
import { readJsonObject } from "../http/read-json.ts";
import { stateOf } from "../http/request-state.ts";
import { callerOf } from "../keys/authenticate.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import { requestOf } from "./keep-accounts.ts";
import type { ReadRequest } from "./read-request.ts";
import { resolveModel } from "./resolve-model.ts";

/** Reads the body of a request, with the stored texts that it names. */
export async function readBody(
  { endpoint, incoming }: ModelExchange,
  dependencies: InferenceDependencies,
): Promise<ReadRequest> {
  const { body } = incoming;
  // The run alone keeps the bytes from now on.
  incoming.body = undefined;
  const { key, leaving } = callerOf(incoming);
  const owner = { sender: key.id, signal: leaving.signal };
  try {
    const stored = body && (await endpoint.lookUp?.(body, incoming, dependencies));
    return await dependencies.reader.read(endpoint.kind, body, { stored, boundary: boundaryIn(incoming), ...owner });
  } finally {
    stateOf(incoming).arriving?.leave();
  }
}

/** Returns the boundary of a request's form; undefined on a route that takes JSON. */
function boundaryIn({ routeOptions, headers }: FastifyRequest): string | undefined {
  return routeOptions.config.takesForm === true ? formBoundary(headers) : undefined;
}

/** Refuses a model that is not there before stored texts are read for it. A large body is not parsed twice for that. */
export async function assertModel(
  body: Buffer,
  incoming: FastifyRequest,
  { runner, modelRoutes }: InferenceDependencies,
): Promise<void> {
  const model = body.byteLength > limits.partBytes ? undefined : readJsonObject(body)["model"];
  if (typeof model !== "string") return;
  const { key, leaving } = callerOf(incoming);
  const request = requestOf(incoming);
  request.asksFor({ model, streamed: false });
  const { targets, ...routed } = resolveModel(model, key, modelRoutes.table);
  request.asksFor({ model, streamed: false, ...routed });
  const needs = { capability: "completion", tools: false, imageParam: undefined } as const;
  await runner.assertTaker({ targets, kind: "chat", needs }, request, leaving.signal);
}
