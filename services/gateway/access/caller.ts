import type { FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { stateOf } from "../edge/request-state.ts";

/** Whoever sent a request and proved a key. */
export interface Caller {
  readonly key: KeyRecord;
  /** Aborts when nobody may have the answer any more: the client has left, or its key was taken back. */
  readonly leaving: AbortController;
}

export function setCaller(request: FastifyRequest, caller: Caller): void {
  const state = stateOf(request);
  state.caller = caller;
  state.key = caller.key.id;
}

/** Nobody, as long as no key was proved. */
export function callerIfProven(request: FastifyRequest): Caller | undefined {
  return stateOf(request).caller;
}

/** The caller of an authenticated request. A route that is reached without one is a bug, never a way in. */
export function callerOf(request: FastifyRequest): Caller {
  const { caller } = stateOf(request);
  if (caller === undefined) throw Fault.from(new Error("a route that needs a key was reached without one"));
  return caller;
}
