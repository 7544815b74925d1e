import type { FastifyInstance } from "fastify";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { refuseWithoutHeapRoom } from "../http/bound-uploads.ts";
import { answerRequest } from "../requests/obtain.ts";
import { keepAccounts } from "../requests/keep-accounts.ts";
import { addRateLimitHeaders } from "../requests/limit-responses.ts";
import type { ApiParts } from "./api.ts";
import { apis } from "./apis.ts";

/**
 * Mounts the APIs, which are reached with a proven key only, or those at `/v1` below another path. Requests to models have
 * an account each, and are refused where there is no memory for them.
 */
export function mountApis(
  server: FastifyInstance,
  { prove, below = "" }: { readonly prove: (scope: FastifyInstance) => void; readonly below?: string },
  parts: ApiParts,
): void {
  const mounted = below === "" ? apis : apis.filter(({ prefix }) => prefix === "/v1");
  void server.register(async (scope) => {
    const methods = new Map<string, string[]>();
    scope.addHook("onRoute", ({ method, url }) => {
      methods.getOrInsertComputed(url, () => []).push(...[method].flat());
    });
    prove(scope);
    parts.captures?.announce(scope);
    addRateLimitHeaders(scope, { limits: parts.limited.limits, log: parts.log });
    for (const { prefix, others } of mounted) {
      if (others !== undefined) await scope.register(async (own) => others(own, parts), { prefix: below + prefix });
    }
    await scope.register(async (inference) => {
      refuseWithoutHeapRoom(inference, parts);
      keepAccounts(inference, { ...parts, ...parts.limited });
      for (const { prefix, endpoints, beforeBody } of mounted) {
        for (const endpoint of endpoints) {
          const { path, aliases = [], takesForm = false } = endpoint;
          const options = { config: { takesForm, endpoint }, ...(beforeBody && { onRequest: beforeBody }) };
          const paths = [below + prefix + path, ...(below === "" ? aliases : [])];
          const handler = parts.captures?.handle(endpoint, parts) ?? answerRequest(endpoint, parts);
          for (const each of paths) inference.post<{ Body: Buffer | undefined }>(each, options, handler);
        }
      }
    });
    // Before a key is asked for.
    for (const [url, allowed] of methods) refuseOtherMethods(server, url, allowed);
  });
}
