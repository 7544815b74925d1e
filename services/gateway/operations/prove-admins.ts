import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Actor } from "#shared/keys/audit-entry.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { stateOf } from "../edge/request-state.ts";
import { authenticateAdmin, type AdminProof } from "./authenticate-admin.ts";

interface Asker {
  readonly actor: Actor;
  readonly admin: KeyRecord;
}

const askers = new WeakMap<FastifyRequest, Asker>();
const reading: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/**
 * Refuses requests without a valid key of the admin API in a scope of routes, before their bodies are read. A viewer
 * key may only read.
 */
export function proveAdmins(scope: FastifyInstance, proof: AdminProof): void {
  scope.addHook("onRequest", async (request) => {
    const { authorization } = request.headers;
    const admin = await authenticateAdmin({ authorization, address: request.ip }, proof);
    stateOf(request).key = admin.id;
    if (admin.kind === "viewer" && !reading.has(request.method)) {
      throw new Fault("insufficient_permissions", { message: "A viewer key only reads. This takes an admin key." });
    }
    askers.set(request, { actor: { by: `admin ${admin.id}`, request: request.id }, admin });
  });
}

/**
 * Returns the admin key of a request, and its name in the audit trail. A route that is reached without a key is a bug.
 */
export function askerOf(request: FastifyRequest): Asker {
  const asker = askers.get(request);
  if (asker === undefined) throw Fault.from(new Error("a route that needs an admin key was reached without one"));
  return asker;
}

export function actorOf(request: FastifyRequest): Actor {
  return askerOf(request).actor;
}
