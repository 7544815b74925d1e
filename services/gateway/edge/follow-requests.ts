import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#shared/process/log.ts";
import type { RequestFacts } from "../meters/request-facts.ts";
import type { EndedRequest } from "../meters/request-meters.ts";
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

/** Follows every request of a server to its end. It must be the first to see them. */
export function followRequests(server: FastifyInstance, means: Means): void {
  server.addHook("onRequest", (request, reply, done) => {
    followRequest({ request, reply }, means);
    done();
  });
}

/** When the answer is out, or its client has left, the request has one line in the log and is counted, once. */
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
  // Of a URL that leads nowhere there is no route, and its sender may have written anything.
  const { url: route = "unknown" } = request.routeOptions;
  meter?.requestEnded({ route, ms, facts });
}
