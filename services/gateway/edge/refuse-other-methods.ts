import { METHODS } from "node:http";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";

/** What Node never makes a request of: it becomes a tunnel, or nothing. */
const neverRouted = "CONNECT";
const everyMethod = METHODS.filter((method) => method !== neverRouted);

/** Lets routes have any method that HTTP knows, so that they can refuse it by name. */
export function knowEveryMethod(server: FastifyInstance): void {
  for (const method of everyMethod) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method);
  }
}

/** A route that exists answers its other methods with 405 and says which it has, before it asks for a key. */
export function refuseOtherMethods(server: FastifyInstance, url: string, allowed: readonly string[]): void {
  server.route({
    method: everyMethod.filter((method) => !allowed.includes(method)),
    url,
    // Here and not in the handler: nobody has proved a key, so no body is read for it.
    onRequest: async (request, reply) => {
      reply.header("allow", allowed.join(", "));
      throw new Fault("method_not_allowed", {
        message: `${request.method} is not allowed here; use ${allowed.join(" or ")}.`,
      });
    },
    handler: () => undefined,
  });
}
