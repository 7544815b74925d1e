import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { clientRequest } from "./client-request.ts";
import { factsOf, jobFieldsOf, stateOf, type EndedRequest, type RequestFacts } from "./request-state.ts";
import { atClose, sinceArrivalMs } from "./timed-response.ts";

/** Counts requests. */
export interface RequestMeter {
  requestBegan(): void;
  requestEnded(ended: EndedRequest): void;
}

interface Means {
  readonly log: Log;
  readonly meter?: RequestMeter | undefined;
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Follows every request of a server to its end. Its hook must be the first to see them. */
export function followRequests(server: FastifyInstance, means: Means): void {
  server.addHook("onRequest", (request, reply, done) => {
    followRequest({ request, reply }, means);
    done();
  });
}

/** Logs one line for a request and counts it once, when its answer is sent or its client has left. */
export function followRequest(exchange: Exchange, means: Means): void {
  means.meter?.requestBegan();
  const { raw } = exchange.reply;
  if (raw.closed) reportEnd(exchange, means);
  else atClose(raw, () => reportEnd(exchange, means));
}

function reportEnd({ request, reply }: Exchange, { log, meter }: Means): void {
  const known = factsOf(request);
  const facts: RequestFacts =
    known.outcome === undefined ? { ...known, outcome: reply.raw.writableFinished ? "ok" : "client_closed" } : known;
  const ms = sinceArrivalMs(reply.raw);
  logRequest(log, { request, status: reply.statusCode, ms, facts });
  // An unknown URL has no route. The URL itself is no label, because a client may write anything into it.
  const { url: route = "unknown" } = request.routeOptions;
  meter?.requestEnded({ route, ms, facts });
}

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Logs the one line of a request. A query may hold a secret and is not logged; neither is any part of a body. */
function logRequest(
  log: Log,
  ended: {
    readonly request: FastifyRequest;
    readonly status: number;
    readonly ms: number;
    readonly facts: RequestFacts;
  },
): void {
  const { request, status, ms, facts } = ended;
  const path = pathOf(request);
  const { key, model, outcome, answer } = facts;
  const { job, earlierJobs } = jobFieldsOf(answer?.jobs);
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
