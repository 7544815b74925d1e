import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#shared/process/log.ts";
import type { EndedRequest, RequestFacts } from "../meters/request-meters.ts";
import { logRequest } from "./log-requests.ts";
import { factsOf } from "./request-facts.ts";
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
  if (raw.closed) tellEnd(exchange, means);
  else atClose(raw, () => tellEnd(exchange, means));
}

function tellEnd({ request, reply }: Exchange, { log, meter }: Means): void {
  const known = factsOf(request);
  const facts: RequestFacts =
    known.outcome === undefined ? { ...known, outcome: reply.raw.writableFinished ? "ok" : "client_closed" } : known;
  const ms = sinceArrivalMs(reply.raw);
  logRequest(log, { request, status: reply.statusCode, ms, facts });
  // An unknown URL has no route. The URL itself is no label, because a client may write anything into it.
  const { url: route = "unknown" } = request.routeOptions;
  meter?.requestEnded({ route, ms, facts });
}
