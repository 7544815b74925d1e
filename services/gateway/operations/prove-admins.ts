import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Actor } from "#shared/keys/audit-entry.ts";
import { stateOf } from "../edge/request-state.ts";
import { authenticateAdmin, type AdminProof } from "./authenticate-admin.ts";

const actors = new WeakMap<FastifyRequest, Actor>();

/** Lets only requests with a proven admin key into a scope of routes, before a byte of their bodies is read. */
export function proveAdmins(scope: FastifyInstance, proof: AdminProof): void {
  scope.addHook("onRequest", async (request) => {
    const { authorization } = request.headers;
    const { id } = await authenticateAdmin({ authorization, address: request.ip }, proof);
    stateOf(request).key = id;
    actors.set(request, { by: `admin ${id}`, request: request.id });
  });
}

/** Who the audit trail names for what a request does. A route that is reached without one is a bug, never a way in. */
export function actorOf(request: FastifyRequest): Actor {
  const actor = actors.get(request);
  if (actor === undefined) throw Fault.from(new Error("a route that needs an admin key was reached without one"));
  return actor;
}
