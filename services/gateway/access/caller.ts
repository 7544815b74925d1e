import type { FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";

/** Whoever sent a request and proved a key. */
export interface Caller {
  readonly key: KeyRecord;
  /** Aborts when nobody may have the answer any more: the client has left, or its key was taken back. */
  readonly leaving: AbortController;
}

const callers = new WeakMap<FastifyRequest, Caller>();

export function setCaller(request: FastifyRequest, caller: Caller): void {
  callers.set(request, caller);
}

/** Nobody, as long as no key was proved. */
export function callerIfProven(request: FastifyRequest): Caller | undefined {
  return callers.get(request);
}

/** The caller of an authenticated request. A route that is reached without one is a bug, never a way in. */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request);
  if (caller === undefined) throw Fault.from(new Error("a route that needs a key was reached without one"));
  return caller;
}
