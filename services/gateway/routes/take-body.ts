import type { FastifyRequest } from "fastify";

/** Returns the body of a request and removes it there, so that the request does not keep its bytes. */
export function takeBody(request: FastifyRequest<{ Body: Buffer | undefined }>): Buffer | undefined {
  const { body } = request;
  request.body = undefined;
  return body;
}
