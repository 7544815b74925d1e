import type { FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { stateOf } from "../edge/request-state.ts";

/** The sender of a request, with its proven key. */
export interface Caller {
  readonly key: KeyRecord;
  /** Aborts when the request must end: the client has left, or its key was revoked or disabled. */
  readonly leaving: AbortController;
}

export function setCaller(request: FastifyRequest, caller: Caller): void {
  const state = stateOf(request);
  state.caller = caller;
  state.key = caller.key.id;
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
