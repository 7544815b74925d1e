import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { booksOf } from "#shared/records/book.ts";
import type { KeyLimits, KeyRecord } from "#shared/records/key-record.ts";
import { noteCaller, type RunningRequests, untilClientLeaves } from "../keys/authenticate.ts";
import { type AdminProof, askerBy } from "./operations-access.ts";

/** The limits of the playground, for all sessions of one admin key together. */
const playgroundLimits: KeyLimits = { requestsPerMinute: 120, concurrency: 8 };

/**
 * Lets the console's playground call the public API on the operations port: no key lies in the page, and no other origin
 * needs to be allowed. A request counts as one of the admin key that its session stands for, and ends with it.
 */
export function provePlayground(
  scope: FastifyInstance,
  parts: AdminProof & { readonly running: RunningRequests },
): void {
  scope.addHook("onRequest", async (request, reply) => {
    const leaving = untilClientLeaves(reply.raw);
    const { admin, role, session } = await askerBy(request, parts);
    if (session === undefined || role === "viewer") {
      const message =
        "The playground is for sessions of admins. Other clients call the models at the public port, with an API key.";
      throw new Fault("insufficient_permissions", { message });
    }
    const key = playgroundKey(admin);
    noteCaller({ request, reply }, { key, books: booksOf(key) }, { leaving, running: parts.running });
  });
}

/** Returns the key under which a session's requests run. It is never stored, and no text opens it. */
function playgroundKey(admin: KeyRecord): KeyRecord {
  return { ...admin, kind: "model", scopes: ["*"], limits: playgroundLimits };
}
