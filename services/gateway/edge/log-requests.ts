import type { FastifyRequest } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { clientRequest } from "../intake/client-request.ts";
import type { RequestFacts } from "../meters/request-facts.ts";
import { tiesOf } from "./request-facts.ts";

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** The one line of a request. What a query holds may be a secret, and is not logged; nor is anything of a body. */
export function logRequest(
  log: Log,
  told: {
    readonly request: FastifyRequest;
    readonly status: number;
    readonly ms: number;
    readonly facts: RequestFacts;
  },
): void {
  const { request, status, ms, facts } = told;
  const path = pathOf(request);
  const { request: id, ...ties } = tiesOf(request, facts);
  const fields = { request: id, ...clientRequest(request.headers), method: request.method, path };
  const outcome = { status, ms: Math.round(ms), outcome: facts.outcome };
  log[probes.has(path) ? "debug" : "info"]({ ...fields, ...outcome, ...ties, ...answerOf(facts) }, "request");
}

function answerOf({ answer }: RequestFacts): Readonly<Record<string, unknown>> {
  if (answer === undefined || answer.jobs.length === 0) return {};
  const { firstTokenMs, promptTokens, completionTokens, failovers } = answer;
  return {
    firstTokenMs: firstTokenMs === undefined ? undefined : Math.round(firstTokenMs),
    promptTokens,
    completionTokens,
    ...(failovers === 0 ? {} : { failovers }),
  };
}

export function pathOf(request: FastifyRequest): string {
  const query = request.url.indexOf("?");
  return query === -1 ? request.url : request.url.slice(0, query);
}
