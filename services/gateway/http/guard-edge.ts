import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import { unknownUrl } from "./answer-faults.ts";
import { followRequest, type FollowParts } from "./request-state.ts";
import { asksForWebSocket } from "./route-upgrades.ts";
import { type AnswersUnderWay, TimedResponse } from "./timed-response.ts";

/** The state of a server by which it refuses requests, or closes their connections. */
export interface EdgeTerms {
  /** Connections close after their next answer while it drains, so that clients go elsewhere. */
  readonly lifecycle?: Pick<Lifecycle, "draining">;
  /** Requests that arrive on open connections after it has begun are refused. */
  readonly closing?: { readonly begun: boolean };
  /** The path at which requests may become WebSockets; none by default. */
  readonly webSocketsAt?: string | undefined;
}

interface EdgeParts extends EdgeTerms, FollowParts {
  readonly underWay: AnswersUnderWay;
}

/** Names each request and follows it to its end. Refuses it before its key is asked for if no key would change that. */
export function guardEdge(server: FastifyInstance, parts: EdgeParts): void {
  server.decorateRequest("state");
  server.addHook("onRequest", (request, reply, done) => {
    followRequest({ request, reply }, parts);
    if (reply.raw instanceof TimedResponse) reply.raw.requestId = request.id;
    if (parts.lifecycle?.draining) reply.header("connection", "close");
    const fault = edgeFault(request, parts);
    // A 426 has to name a protocol that is spoken.
    if (fault?.code === "upgrade_refused") reply.header("upgrade", "HTTP/1.1");
    if (fault !== undefined && fault.code !== "unknown_url") reply.header("connection", "close");
    done(fault);
  });
}

/** Returns the fault that refuses a request before its key is checked, whoever sent it; undefined if there is none. */
function edgeFault(request: FastifyRequest, { underWay, webSocketsAt, closing }: EdgeParts): Fault | undefined {
  const { method = "", url = "", httpVersion, rawHeaders, headers, socket } = request.raw;
  const answersUnderWay = underWay.countOn(socket);
  const framing = framingFault({ method, url, httpVersion, rawHeaders, headers, answersUnderWay });
  if (framing !== undefined) return framing;
  const takesNoBody = method === "GET" || method === "HEAD";
  const body =
    takesNoBody && !request.routeOptions.config.refusesMethod ? unexpectedBody({ method, headers }) : undefined;
  if (body !== undefined) return body;
  if ("upgrade" in headers && asksForWebSocket(request.raw, { elsewhereThan: webSocketsAt })) {
    const message = "No WebSocket is served here; send the request by HTTP, without 'Upgrade: websocket'.";
    return new Fault("upgrade_refused", { message });
  }
  if (closing?.begun)
    return new Fault("shutting_down", { message: "This gateway shuts down; send the request again." });
  return request.is404 ? unknownUrl(request) : undefined;
}

/** Header lines of one request. */
export const headerLinesMax = 100;
/** All header lines of one request with their line ends. */
export const headersBytesMax = 16 * 1024;
export const urlBytesMax = 8 * 1024;
/** Requests on one connection whose answers are not sent yet. */
export const requestsAheadMax = 1_000;

/** The head of a request, as it was read. */
export interface RequestHead {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingHttpHeaders;
  /** Number of unsent answers on its connection, this request's among them. */
  readonly answersUnderWay: number;
}

/** Headers that may appear only once: two would mean different things to different readers. */
const single: ReadonlySet<string> = new Set([
  "host",
  "authorization",
  "x-api-key",
  "api-key",
  "content-type",
  "content-encoding",
  "transfer-encoding",
  "expect",
]);

/** Matches a host with an optional port. Neither may hold a separator of URLs or an invisible character. */
const hostPattern = /^(?:\[[\w.:%]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/;
const encodedControl = /%(?:[01][0-9a-f]|7f)/i;

/**
 * Returns the fault in the head of a request, whatever its route. Nothing is guessed where readers of HTTP differ: a
 * proxy in front could read the request differently.
 */
export function framingFault(head: RequestHead): Fault | undefined {
  const { method, url, httpVersion, rawHeaders, headers, answersUnderWay } = head;
  const lines = rawHeaders.length / 2;
  if (answersUnderWay > requestsAheadMax)
    return broken(`More than ${requestsAheadMax} requests came before the answer to the first (requestsAheadMax).`);
  if (url.length > urlBytesMax)
    return refused("uri_too_long", `The request's URL is larger than ${urlBytesMax} bytes (urlBytesMax).`);
  if (lines > headerLinesMax)
    return refused("headers_too_large", `The request has more than ${headerLinesMax} headers (headerLinesMax).`);
  let bytes = 4 * lines;
  let twice: string | undefined;
  const seen: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? "";
    bytes += name.length + (rawHeaders[index + 1]?.length ?? 0);
    if (!single.has(name)) continue;
    if (seen.includes(name)) twice ??= name;
    seen.push(name);
  }
  if (bytes > headersBytesMax)
    return refused(
      "headers_too_large",
      `The request's headers are larger than ${headersBytesMax} bytes (headersBytesMax).`,
    );
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return broken("Only HTTP/1.1 and HTTP/1.0 are spoken here.");
  if (twice !== undefined) return broken(`The request has more than one ${twice} header.`);
  const { host, expect, "transfer-encoding": coding } = headers;
  if (host === undefined && httpVersion === "1.1") return broken("The request has no Host header.");
  if (host !== undefined && !hostPattern.test(host)) return broken("The request's Host header names no host.");
  if (!url.startsWith("/") && !(method === "OPTIONS" && url === "*"))
    return broken("The request's target must be a path: this is no proxy.");
  if (encodedControl.test(url)) return broken("The request's URL holds an encoded control character.");
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return broken("The only Transfer-Encoding that is read here is chunked.");
  if (coding !== undefined && httpVersion === "1.0")
    return broken("HTTP/1.0 knows no Transfer-Encoding: who forwards it may see another end of the request.");
  if (expect !== undefined && expect.toLowerCase() !== "100-continue")
    return refused("expectation_failed", "The only expectation that can be met here is 100-continue.");
  return undefined;
}

/** Returns the fault of a GET or HEAD with a body, at a route that has these methods. */
function unexpectedBody({ method, headers }: Pick<RequestHead, "method" | "headers">): Fault | undefined {
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  return hasBody ? broken(`A ${method} request has no body here.`) : undefined;
}

function broken(message: string): Fault {
  return refused("bad_request", message);
}

function refused(code: FaultCode, message: string): Fault {
  return new Fault(code, { message });
}

const mediaType = /^application\/json[ \t]*((?:;.*)?)$/i;
/** Matches one parameter with the separator before it; its value may be quoted. */
const parameter = /;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"([^"\\]*)"|([\w!#$%&'*+.^`|~-]+)))?[ \t]*/y;

/**
 * Throws unless the headers declare JSON in UTF-8 without compression. No reader has to guess what a body means, or how
 * large it becomes.
 */
export function assertPlainJson(headers: IncomingHttpHeaders): void {
  const { "content-type": type, "content-encoding": coding } = headers;
  if (coding === undefined && (type === undefined || type === "application/json")) return;
  assertNoCoding(headers);
  if (type === undefined) return;
  const parameters = mediaType.exec(type)?.[1];
  if (parameters === undefined) throw unsupported("Send the request with Content-Type: application/json.");
  assertUtf8(parameters);
}

/** Matches a boundary of the characters that RFC 2046 allows, without those that have to be quoted twice. */
const boundaryOf =
  /^multipart\/form-data[ \t]*;[ \t]*(?:charset=utf-8[ \t]*;[ \t]*)?boundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'+.-]{1,70}))[ \t]*$/i;

/** Returns the boundary of a form. Throws unless the headers declare one, without compression. */
export function formBoundary(headers: IncomingHttpHeaders): string {
  assertNoCoding(headers);
  const [, quoted, bare] = boundaryOf.exec(headers["content-type"] ?? "") ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined)
    throw unsupported(
      "Send the request with Content-Type: multipart/form-data and its boundary, of 1 to 70 characters.",
    );
  return boundary;
}

function assertNoCoding({ "content-encoding": coding }: IncomingHttpHeaders): void {
  if (coding !== undefined && coding.toLowerCase() !== "identity")
    throw unsupported("Send the body as it is, without Content-Encoding.");
}

function assertUtf8(parameters: string): void {
  let index = 0;
  while (index < parameters.length) {
    parameter.lastIndex = index;
    const found = parameter.exec(parameters);
    if (found === null) throw unsupported("Send the request with Content-Type: application/json.");
    const [whole, name, quoted, bare] = found;
    const value = quoted ?? bare ?? "";
    if (name?.toLowerCase() === "charset" && !/^utf-?8$/i.test(value)) throw unsupported("Send the body as UTF-8.");
    index += whole.length;
  }
}

function unsupported(message: string): Fault {
  return new Fault("unsupported_media_type", { message });
}
