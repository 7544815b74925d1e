import type { FastifyRequest } from "fastify";
import { readJsonObject } from "../intake/read-json.ts";

/** The body of a request as JSON. Its bytes nobody else keeps from here on. */
export function takeBody(request: FastifyRequest<{ Body: Buffer | undefined }>): Record<string, unknown> {
  const { body } = request;
  request.body = undefined;
  return readJsonObject(body);
}
