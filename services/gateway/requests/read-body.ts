import { formBoundary } from "../http/framing-fault.ts";
import { stateOf } from "../http/request-state.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import type { ReadRequest } from "./read-request.ts";

/** Reads the body of a request, with the stored texts that it names. */
export async function readBody(exchange: ModelExchange, dependencies: InferenceDependencies): Promise<ReadRequest> {
  const { endpoint, incoming, request, leaving } = exchange;
  const { body } = incoming;
  // The run alone keeps the bytes from now on.
  incoming.body = undefined;
  const owner = { sender: request.key.id, signal: leaving.signal };
  const boundary = endpoint.takesForm === true ? formBoundary(incoming.headers) : undefined;
  try {
    const stored = body && (await endpoint.lookUp?.(body, exchange, dependencies));
    return await dependencies.reader.read(endpoint.kind, body, { stored, boundary, ...owner });
  } finally {
    stateOf(incoming).arriving?.leave();
  }
}
