import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { atClose } from "../edge/timed-response.ts";
import { untilClientLeaves } from "./until-client-leaves.ts";
import { authenticate, recallKey } from "./authenticate.ts";
import type { BadKeys } from "./bad-keys.ts";
import { setCaller } from "./caller.ts";
import type { KnownKeys } from "./known-keys.ts";
import { PresentedKeys } from "./presented-keys.ts";
import type { RunningRequests } from "./running-requests.ts";

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
  const presented = new PresentedKeys();
  scope.addHook("onRequest", (request, reply, done) => {
    const leaving = untilClientLeaves(reply.raw);
    const { authorization } = request.headers;
    const proven = (key: KeyRecord): void => begin({ request, reply }, { key, leaving, running: means.running });
    // Nearly every key is known, and a promise would cost more than the lookup in memory.
    const known = recallKey(presented.read(authorization, request.raw.socket), means.knownKeys);
    if (known === undefined) return authenticate({ authorization, address: request.ip }, means).then(proven);
    proven(known);
    done();
    return undefined;
  });
}

function begin(
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  of: { readonly key: KeyRecord; readonly leaving: AbortController; readonly running: RunningRequests },
): void {
  const { key, leaving, running } = of;
  setCaller(request, { key, leaving });
  if (!leaving.signal.aborted) atClose(reply.raw, running.begin(key.id, leaving));
}
