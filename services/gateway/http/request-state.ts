import type { FastifyRequest, FastifyReply } from "fastify";
import type { Fault, FaultCode } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { sinceArrivalMs } from "./timed-response.ts";
import type { IncomingHttpHeaders } from "node:http";
import { isIPv4, isIPv6 } from "node:net";

export type RequestOutcome = "ok" | FaultCode;

/** Facts of a request, shared by its log lines and its metrics. */
export interface RequestFacts {
  /** The id of the request's key, once the key is proved. */
  readonly key?: string | undefined;
  /** The team of that key, if it has one. */
  readonly team?: string | undefined;
  /** The model as the client named it. */
  readonly model?: string | undefined;
  readonly streamed?: boolean;
  /** Absent as long as the outcome is unknown. */
  readonly outcome?: RequestOutcome | undefined;
  readonly answer?: AnswerFacts | undefined;
}

/** The course of the answer to a request. All times are from the request's arrival, unless they say otherwise. */
interface AnswerFacts {
  /** Ids of the jobs that were offered to machines for the request, the latest last. */
  readonly jobs: readonly string[];
  /** The latest machine that accepted a job of the request. */
  readonly machine: string | undefined;
  /** The model by its id in that machine's catalogue. */
  readonly model: string | undefined;
  /** Counts the moves of the request to another machine after one had accepted it. */
  readonly failovers: number;
  readonly acceptedMs: number | undefined;
  /** For how long the request waited on that machine until its model was loaded. */
  readonly loadWaitMs: number | undefined;
  readonly firstTokenMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** In millionths of the currency; absent where the model has no price, and until the request is booked. */
  readonly cost?: number | undefined;
}

/** A request whose answer is sent, or will never be. */
export interface EndedRequest {
  /** The URL pattern of the route, which bounds the number of label values. */
  readonly route: string;
  readonly ms: number;
  readonly facts: RequestFacts;
}

/**
 * The state of one request while it runs. Each field belongs to the one file that sets it. Other rooms declare their
 * fields in their own files, by merging this interface.
 */
export interface RequestState {
  /** The id of the request's key, once the key is proved. */
  key: string | undefined;
  /** Code of the fault that the client got. */
  faultCode: FaultCode | undefined;
  /** The reason of the fault in which the request ended, for the log. */
  reason: string | undefined;
  /** Reports the facts of the request, once an account is kept of it. */
  reporter: { readonly facts: RequestFacts } | undefined;
  /** The path of the request, without its query. */
  readonly path: string;
  readonly trace: RequestTrace;
  /** The shape of errors that the client of the request reads; undefined for OpenAI's. */
  readonly faultShape: FaultShape | undefined;
}

/** The trace of one request. Other rooms declare what they report to it in their own files, by merging this interface. */
export interface RequestTrace {
  /** The id of the trace; undefined for a request that is not traced. */
  readonly id: string | undefined;
  /** Returns the `traceparent` of the request's jobs. Called once its key is proven. */
  parentOf(headers: IncomingHttpHeaders): string | undefined;
  /** Called when the answer is sent, or its client has left. */
  closed(facts: RequestFacts): void;
}

export type BeginTrace = (exchange: Exchange) => RequestTrace;

const nothing = (): void => undefined;

/** The trace of every request where tracing is off: the client's own `traceparent` goes on to the machine. */
export const untraced: RequestTrace = {
  id: undefined,
  parentOf: ({ traceparent }) => (typeof traceparent === "string" ? traceparent : undefined),
  closed: nothing,
  settled: nothing,
};

/** The shape of an API's errors, and the requests that get it. */
export interface FaultShape {
  /** The path of this API. Each request to it or below it gets this shape, whatever its headers are. */
  readonly prefix: string;
  /** A header by which clients of this API are known at the paths of all other APIs. */
  readonly header?: string;
  /** The response header in which these clients look for the id of their request. */
  readonly idHeader?: string;
  body(fault: Fault, requestId: string): object;
  status?(fault: Pick<Fault, "code">): number;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Made by `followRequest`, which sees each request first. A map from requests to states would cost more. */
    state: RequestState;
  }
}

export const newRequestId = (): string => newToken("req_");

function faultShapeOf(
  path: string,
  headers: IncomingHttpHeaders,
  shapes: readonly FaultShape[],
): FaultShape | undefined {
  let byHeader: FaultShape | undefined;
  for (const shape of shapes) {
    if (path === shape.prefix || path.startsWith(`${shape.prefix}/`)) return shape;
    if (shape.header !== undefined && shape.header in headers) byHeader ??= shape;
  }
  return byHeader;
}

function factsOf(request: FastifyRequest): RequestFacts {
  const { reporter, key, faultCode } = request.state;
  if (reporter === undefined) return { key, outcome: faultCode };
  const { facts } = reporter;
  return facts.outcome === undefined ? { ...facts, outcome: faultCode } : facts;
}

/** Returns the fields that all log lines of a request share, here and on the machine that ran it. */
export function logFieldsOf(request: FastifyRequest): Readonly<Record<string, unknown>> {
  const { key, model, answer } = factsOf(request);
  return { request: request.id, key, model, ...jobFieldsOf(answer?.jobs), machine: answer?.machine };
}

/** Returns the log fields for the jobs of a request: the latest as `job`, the others as `earlierJobs`. */
function jobFieldsOf(jobs: readonly string[] = []): { readonly job?: unknown; readonly earlierJobs?: unknown } {
  return { job: jobs.at(-1), earlierJobs: jobs.length > 1 ? jobs.slice(0, -1) : undefined };
}

export interface RequestMeter {
  requestBegan(): void;
  requestEnded(ended: EndedRequest): void;
}

/** The parts that report on requests. */
export interface FollowParts {
  readonly log: Log;
  /** The shapes of errors of APIs that have another one than OpenAI's. */
  readonly faultShapes: readonly FaultShape[];
  readonly meter?: RequestMeter | undefined;
  readonly beginTrace: BeginTrace;
}

export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * Makes the state of a request, before anything else sees it, and writes its id into the headers of its answer, where its client
 * looks for it. Logs one line for the request and counts it once, when its answer is sent or its client has left.
 */
export function followRequest(exchange: Exchange, dependencies: FollowParts): void {
  const { request, reply } = exchange;
  const { url, headers } = request;
  const query = url.indexOf("?");
  const path = query === -1 ? url : url.slice(0, query);
  const faultShape = faultShapeOf(path, headers, dependencies.faultShapes);
  request.state = {
    key: undefined,
    faultCode: undefined,
    reason: undefined,
    reporter: undefined,
    path,
    faultShape,
    trace: dependencies.beginTrace(exchange),
  };
  reply.header("x-request-id", request.id);
  if (faultShape?.idHeader !== undefined) reply.header(faultShape.idHeader, request.id);
  dependencies.meter?.requestBegan();
  const { raw } = reply;
  if (raw.closed) reportEnd(exchange, dependencies);
  else raw.once("close", () => reportEnd(exchange, dependencies));
}

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/health", "/metrics"]);

function reportEnd({ request, reply }: Exchange, { log, meter }: FollowParts): void {
  const known = factsOf(request);
  const facts: RequestFacts =
    known.outcome === undefined ? { ...known, outcome: reply.raw.writableFinished ? "ok" : "client_closed" } : known;
  const ms = sinceArrivalMs(reply.raw);
  const fields = endFieldsOf({ request, reply }, { ms, facts });
  if (probes.has(fields.path)) log.debug(fields, "request");
  else log.info(fields, "request");
  // An unknown URL has no route. The URL itself is no label, because a client may write anything into it.
  const { url: route = "unknown" } = request.routeOptions;
  meter?.requestEnded({ route, ms, facts });
  request.state.trace.closed(facts);
}

/**
 * Returns the fields of a request's one line in the log, which leaves out undefined ones. A query may hold a secret and
 * is not logged; neither is any part of a body.
 */
function endFieldsOf({ request, reply }: Exchange, { ms, facts }: Pick<EndedRequest, "ms" | "facts">) {
  const { key, model, outcome, answer } = facts;
  const { job, earlierJobs } = jobFieldsOf(answer?.jobs);
  const answered = job === undefined ? undefined : answer;
  const firstTokenMs = answered?.firstTokenMs;
  return {
    request: request.id,
    ...("x-client-request-id" in request.headers && clientRequest(request.headers)),
    method: request.method,
    path: request.state.path,
    status: reply.statusCode,
    ms: Math.round(ms),
    outcome,
    internal: request.state.reason,
    key,
    model,
    answeredBy: answered?.model === model ? undefined : answered?.model,
    job,
    earlierJobs,
    machine: answer?.machine,
    firstTokenMs: firstTokenMs === undefined ? undefined : Math.round(firstTokenMs),
    promptTokens: answered?.promptTokens,
    completionTokens: answered?.completionTokens,
    failovers: answered?.failovers === 0 ? undefined : answered?.failovers,
  };
}

/** Characters of a client's own request id; OpenAI accepts as many. */
export const clientRequestCharactersMax = 512;

const printable = /^[\x20-\x7e]+$/;

/**
 * Returns the log fields with the client's own request id (`x-client-request-id`). A client can then ask about a
 * request by that id. It never becomes the gateway's id of the request. An id that could garble a log is left out, and
 * the log line says so.
 */
function clientRequest(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const name = headers["x-client-request-id"];
  if (typeof name !== "string" || name === "") return {};
  if (name.length > clientRequestCharactersMax) {
    return { client_request_left_out: "too long (clientRequestCharactersMax)" };
  }
  return printable.test(name) ? { client_request: name } : { client_request_left_out: "not printable ASCII" };
}

/**
 * Returns the network by which an address is counted. For IPv6 this is the /64, because the owner of one address has at
 * least the 2⁶⁴ beside it. All texts of a proxy that are no address share one network.
 */
export function networkOf(given: string): string {
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(given)?.[1] ?? given;
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return "no address";
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [head = [], tail = []] = address.split("::").map((half) => half.split(":"));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  return [...head, ...zeros, ...tail]
    .slice(0, 4)
    .map((group) => (group === "" ? "0" : group))
    .join(":");
}
