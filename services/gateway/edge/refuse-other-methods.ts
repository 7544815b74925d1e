import { METHODS } from "node:http";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";

/** Node never makes a request of CONNECT: it becomes a tunnel, or nothing. */
const neverRouted = "CONNECT";
const everyMethod = METHODS.filter((method) => method !== neverRouted);

/** Registers every HTTP method with the server, so that routes can refuse it by name. */
export function knowEveryMethod(server: FastifyInstance): void {
  for (const method of everyMethod) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method);
  }
}

/** Answers the other methods of an existing route with 405 and its `allow` header, before a key is asked for. */
export function refuseOtherMethods(server: FastifyInstance, url: string, allowed: readonly string[]): void {
  server.route({
    method: everyMethod.filter((method) => !allowed.includes(method)),
    url,
    // In `onRequest` and not in the handler: no key is proved yet, so no body is read.
    onRequest: async (request, reply) => {
      reply.header("allow", allowed.join(", "));
      throw new Fault("method_not_allowed", {
        message: `${request.method} is not allowed here; use ${allowed.join(" or ")}.`,
      });
    },
    handler: () => undefined,
  });
}
