import type { FastifyRequest } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { clientRequest } from "../intake/client-request.ts";
import type { RequestFacts } from "../meters/request-meters.ts";
import { jobsOf } from "./request-facts.ts";
import { stateOf } from "./request-state.ts";

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Logs the one line of a request. A query may hold a secret and is not logged; neither is any part of a body. */
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
  const { key, model, outcome, answer } = facts;
  const { job, earlierJobs } = jobsOf(answer?.jobs);
  const answered = job === undefined ? undefined : answer;
  const firstTokenMs = answered?.firstTokenMs;
  const { client_request, client_request_left_out } = clientRequest(request.headers);
  // The log leaves out undefined fields.
  const fields = {
    request: request.id,
    client_request,
    client_request_left_out,
    method: request.method,
    path,
    status,
    ms: Math.round(ms),
    outcome,
    internal: stateOf(request).reason,
    key,
    model,
    job,
    earlierJobs,
    machine: answer?.machine,
    firstTokenMs: firstTokenMs === undefined ? undefined : Math.round(firstTokenMs),
    promptTokens: answered?.promptTokens,
    completionTokens: answered?.completionTokens,
    failovers: answered?.failovers === 0 ? undefined : answered?.failovers,
  };
  if (probes.has(path)) log.debug(fields, "request");
  else log.info(fields, "request");
}

export function pathOf(request: FastifyRequest): string {
  const query = request.url.indexOf("?");
  return query === -1 ? request.url : request.url.slice(0, query);
}
