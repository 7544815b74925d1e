import type { FastifyInstance } from "fastify";
import { note } from "../edge/request-facts.ts";
import { untilClientLeaves } from "./until-client-leaves.ts";
import { authenticate } from "./authenticate.ts";
import type { BadKeys } from "./bad-keys.ts";
import { setCaller } from "./caller.ts";
import type { KnownKeys } from "./known-keys.ts";
import type { RunningRequests } from "./running-requests.ts";

/**
 * Lets only requests with a proven key into a scope of routes, before a byte of their bodies is read. From then on the
 * request can be ended from here: when its client leaves, and when its key is taken back.
 */
export function proveCallers(
  scope: FastifyInstance,
  means: { readonly knownKeys: KnownKeys; readonly badKeys: BadKeys; readonly running: RunningRequests },
): void {
  scope.addHook("onRequest", async (request, reply) => {
    const leaving = untilClientLeaves(reply.raw);
    const { authorization } = request.headers;
    const key = await authenticate({ authorization, address: request.ip }, means);
    setCaller(request, { key, leaving });
    note(request, { key: key.id });
    if (leaving.signal.aborted) return;
    reply.raw.once("close", means.running.begin(key.id, leaving));
  });
}
