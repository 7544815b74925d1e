import type { FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";

const keys = new WeakMap<FastifyRequest, KeyRecord>();

/** Notes the key that a request proved to have. */
export function setKey(request: FastifyRequest, key: KeyRecord): void {
  keys.set(request, key);
}

/** The key of an authenticated request. A route that is reached without one is a bug, never a way in. */
export function keyOf(request: FastifyRequest): KeyRecord {
  const key = keys.get(request);
  if (key === undefined) throw Fault.from(new Error("a route that needs a key was reached without one"));
  return key;
}
