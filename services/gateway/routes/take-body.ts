import type { FastifyRequest } from "fastify";

/** The body of a request. Nobody else keeps its bytes from here on. */
export function takeBody(request: FastifyRequest<{ Body: Buffer | undefined }>): Buffer | undefined {
  const { body } = request;
  request.body = undefined;
  return body;
}
