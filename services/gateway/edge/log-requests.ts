import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { clientRequest } from "../intake/client-request.ts";

/** One line for each request once its answer is out. What a query holds may be a secret, and is not logged. */
export function logRequests(server: FastifyInstance, log: Log): void {
  server.addHook("onResponse", async (request, reply) => logRequest(log, { request, reply }));
}

export function logRequest(log: Log, { request, reply }: { request: FastifyRequest; reply: FastifyReply }): void {
  const isProbe = request.url === "/healthz" || request.url === "/readyz";
  const fields = { request: request.id, ...clientRequest(request.headers), method: request.method };
  const outcome = { path: pathOf(request), status: reply.statusCode, ms: Math.round(reply.elapsedTime) };
  log[isProbe ? "debug" : "info"]({ ...fields, ...outcome }, "request");
}

export function pathOf(request: FastifyRequest): string {
  const query = request.url.indexOf("?");
  return query === -1 ? request.url : request.url.slice(0, query);
}
