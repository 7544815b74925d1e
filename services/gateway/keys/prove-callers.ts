import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { stateOf } from "../http/request-state.ts";
import { atClose, TimedResponse } from "../http/timed-response.ts";
import { authenticate } from "./authenticate.ts";
import type { BadKeys } from "./bad-keys.ts";
import type { RunningRequests } from "./follow-key-changes.ts";
import type { KnownKeys } from "./known-keys.ts";

/** The sender of a request, with its proven key. */
export interface Caller {
  readonly key: KeyRecord;
  /** Aborts when the request must end: the client has left, or its key was revoked or disabled. */
  readonly leaving: AbortController;
}

declare module "../http/request-state.ts" {
  interface RequestState {
    caller?: Caller;
  }
}

/** Returns undefined as long as no key is proved. */
export function callerIfProven(request: FastifyRequest): Caller | undefined {
  return stateOf(request).caller;
}

/** Returns the caller of an authenticated request. To reach such a route without a caller is a bug, never a way in. */
export function callerOf(request: FastifyRequest): Caller {
  const { caller } = stateOf(request);
  if (caller === undefined) throw Fault.from(new Error("a route that needs a key was reached without one"));
  return caller;
}

/**
 * Returns a controller whose signal aborts when the client leaves before its answer is complete, streamed or not. This
 * signal carries a cancel from the client's socket to the GPU.
 */
export function untilClientLeaves(response: ServerResponse): AbortController {
  const leaving = new AbortController();
  if (response instanceof TimedResponse) response.leaving = leaving;
  atClose(response, () => {
    if (response.writableFinished) return;
    leaving.abort(
      new Fault("client_closed", { message: "The client closed the connection before the answer was complete." }),
    );
  });
  return leaving;
}

interface Means {
  readonly knownKeys: KnownKeys;
  readonly badKeys: BadKeys;
  readonly running: RunningRequests;
}

/**
 * Lets only requests with a proven key into a scope of routes, before a byte of their bodies is read. From then on the
 * request is ended when its client leaves, or when its key is revoked or disabled.
 */
export function proveCallers(scope: FastifyInstance, means: Means): void {
  scope.addHook("onRequest", async (request, reply) => {
    const leaving = untilClientLeaves(reply.raw);
    const { authorization } = request.headers;
    const key = await authenticate({ authorization, address: request.ip }, means);
    const state = stateOf(request);
    state.caller = { key, leaving };
    state.key = key.id;
    if (!leaving.signal.aborted) atClose(reply.raw, means.running.begin(key.id, leaving));
  });
}
