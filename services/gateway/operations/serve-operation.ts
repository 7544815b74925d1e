import type { FastifyInstance, FastifyRequest } from "fastify";
import type { z } from "zod";
import { readJsonObject } from "../openai/read-json.ts";
import type { AdminOperation } from "./admin-operation.ts";
import { readStrictly } from "./read-strictly.ts";

/** A request whose every part was read by the schemas of its operation. */
export interface Asked<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params: z.output<Params>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
  readonly request: FastifyRequest;
}

/** Mounts the route of an operation. All of a request is read before anything is done. */
export function serveOperation<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
>(
  server: FastifyInstance,
  operation: AdminOperation<Params, Query, Body, Answer>,
  answer: (asked: Asked<Params, Query, Body>) => Promise<z.output<Answer>>,
): void {
  server.route({
    method: operation.method,
    url: routeUrl(operation.path),
    handler: async (request, reply) => {
      const asked = {
        params: readStrictly(operation.params, request.params),
        query: readStrictly(operation.query, request.query),
        body: readStrictly(operation.body, readBody(request.body)),
        request,
      };
      return reply.code(operation.status).send(await answer(asked));
    },
  });
}

/** A path as the router writes it. */
export function routeUrl(path: string): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}

/** No body says the same as an empty object. */
function readBody(body: unknown): Record<string, unknown> {
  return body instanceof Buffer && body.byteLength > 0 ? readJsonObject(body) : {};
}
