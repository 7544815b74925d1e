import { type IncomingMessage, METHODS, type IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { faultEntry, Fault, type FaultCode } from "#shared/fault/fault.ts";
import { scrub } from "#shared/process/clean-text.ts";
import type { Log } from "#shared/process/log.ts";
import { logFieldsOf } from "./request-state.ts";

interface Dependencies extends BodyLimit {
  readonly log: Log;
}

/** Answers every error that a server's routes throw with one kind of body and a code from one closed list. */
export function answerFaults(server: FastifyInstance, dependencies: Dependencies): void {
  server.setErrorHandler(async (thrown, request, reply) => {
    const gone = request.raw.destroyed && !request.raw.complete;
    const fault = gone ? new Fault("client_closed", { message: clientLeft }) : adoptError(thrown, dependencies);
    const fields = { ...logFieldsOf(request), code: fault.code, internal: fault.reason };
    if (faultEntry(fault.code).status >= 500) dependencies.log.warn(fields, "request failed");
    else if (fault.code === "key_invalid" && fault.internal !== undefined)
      dependencies.log.warn(fields, "request refused");
    else dependencies.log.debug(fields, "request refused");
    await answerFault(fault, { request, reply, ...dependencies });
    return reply;
  });
  server.setNotFoundHandler(async (request) => {
    throw unknownUrl(request);
  });
}

/** Has a scope read no larger JSON bodies than these, because its routes take them from anybody. */
export function boundBodies(scope: FastifyInstance, bound: Dependencies): void {
  answerFaults(scope, bound);
  scope.removeAllContentTypeParsers();
  const asBytes = { parseAs: "buffer", bodyLimit: bound.bodyBytesMax } as const;
  scope.addContentTypeParser("application/json", asBytes, (_request, body, done) => done(null, body));
}

/** Sends the body of a fault, and either reads or cuts off the unread rest of the request's body. */
export async function answerFault(
  fault: Fault,
  to: Omit<Dependencies, "log"> & { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<void> {
  const { request, reply, bodyBytesMax } = to;
  const { state } = request;
  state.faultCode = fault.code;
  state.reason = fault.reason;
  if (!request.raw.complete && !isReadOn(request.headers, fault.code, bodyBytesMax)) {
    reply.header("connection", "close");
    closeUnread(request.raw);
  }
  // A message may quote the client's input, and a client may send its key in the wrong place.
  const scrubbed = fault.with({ message: scrub(fault.message) });
  const shape = state.faultShape;
  const status = shape?.status?.(fault) ?? faultEntry(fault.code).status;
  const body = shape?.body(scrubbed, request.id) ?? faultBody(scrubbed);
  reply.code(status).headers(faultHeaders(fault)).send(body);
}

const clientLeft = "The client closed the connection before its request was complete.";

/** Time for a client that is still sending to read its answer. */
const lastWordsMs = 1_000;

/**
 * Closes a request's connection after the answer without reading the rest of its body. Closing it at once would lose
 * the answer. Because of the unread bytes the kernel reports a broken connection to the client instead. Therefore `end`
 * closes only this side first, and `destroy` closes the other after `lastWordsMs`.
 */
function closeUnread(request: IncomingMessage): void {
  // Node reads and discards the whole body of a request that was never read from; `read(0)` counts as a read.
  request.read(0);
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    const closing = setTimeout(() => socket.destroy(), lastWordsMs);
    socket.once("close", () => clearTimeout(closing));
  };
}

const shownPathCharactersMax = 200;

const keptElsewhere = /^\/v1\/responses\/|^\/v1\/conversations(?:\/|$)/;
const reference = "/docs";

/** Returns the fault for an unknown URL, with a hint when the intended URL is plain. */
export function unknownUrl(request: FastifyRequest): Fault {
  const path = request.state.path.slice(0, shownPathCharactersMax);
  return new Fault("unknown_url", { message: `No endpoint at ${request.method} ${path}.${hint(request, path)}` });
}

/**
 * Returns the hint for a URL. A base URL may lack its `/v1`, have it twice, or end in a slash. A client may speak
 * another API.
 */
function hint(request: FastifyRequest, path: string): string {
  const isHere = (url: string, method: string = request.method): boolean =>
    url !== "" && request.server.hasRoute({ url, method });
  const near = [
    `/v1${path}`,
    path.replace(/^(?:\/+v1)+(?=\/)/, "/v1"),
    path.replace(/(?<!\/)\/+$/, ""),
    path.replace(/\/{2,}/g, "/"),
  ];
  const meant = near.find((url) => url !== path && isHere(url));
  if (meant !== undefined) return ` Did you mean ${meant}?`;
  if (!isHere(reference, "GET")) return "";
  const isNotKept = keptElsewhere.test(path)
    ? " No response runs in the background here, so that none is cancelled, and none is compacted."
    : "";
  return `${isNotKept} The endpoints are listed at ${reference}.`;
}

/** Node never makes a request of CONNECT: it becomes a tunnel, or nothing. */
const neverRouted = "CONNECT";
const everyMethod = METHODS.filter((method) => method !== neverRouted);

/** Registers every HTTP method with the server, so that routes can refuse it by name. */
export function registerMethods(server: FastifyInstance): void {
  for (const method of everyMethod) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method);
  }
}

/** Answers the other methods of an existing route with 405 and its `allow` header, before a key is asked for. */
export function refuseOtherMethods(server: FastifyInstance, url: string, allowed: readonly string[]): void {
  server.route({
    method: everyMethod.filter((method) => !allowed.includes(method)),
    url,
    config: { refusesMethod: true },
    // In `onRequest` and not in the handler: no key is proved yet, so no body is read.
    onRequest: async (request, reply) => {
      reply.header("allow", allowed.join(", "));
      throw new Fault("method_not_allowed", {
        message: `${request.method} is not allowed here; use ${allowed.join(" or ")}.`,
      });
    },
    handler: () => undefined,
  });
}

/** The size limit of a request's body, and the name by which the operator knows that limit. */
export interface BodyLimit {
  readonly bodyBytesMax: number;
  readonly bodyLimitName: string;
}

const notHere = ["unknown_url", "There is nothing here for this method."] as const;
/** The framework's own refusals, by their codes. */
const refusals: Readonly<Record<string, readonly [code: FaultCode, message: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media_type", "Send the request with Content-Type: application/json."],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["bad_request", "The request's body is not as long as its Content-Length says."],
  FST_ERR_BAD_URL: ["bad_request", "The request's URL is not well formed."],
  FST_ERR_MAX_PARAM_LENGTH: ["uri_too_long", "The request's URL is too long."],
  FST_ERR_ROUTE_METHOD_NOT_SUPPORTED: notHere,
  FST_ERR_NOT_FOUND: notHere,
};

/** Returns the fault for a thrown error, which is a refusal of the framework, a `Fault` already, or a bug. */
export function adoptError(thrown: unknown, { bodyBytesMax, bodyLimitName }: BodyLimit): Fault {
  const thrownCode = codeOf(thrown) ?? "";
  if (thrownCode === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const message = `The request's body is larger than ${bodyBytesMax} bytes (${bodyLimitName}).`;
    return new Fault("request_too_large", { message });
  }
  const refusal = refusals[thrownCode];
  if (refusal === undefined) return refusedByFramework(thrown) ?? Fault.from(thrown);
  const [code, message] = refusal;
  return new Fault(code, { message });
}

/** Returns `bad_request` for any other refusal that the framework itself blames on the request. */
function refusedByFramework(thrown: unknown): Fault | undefined {
  const isItsOwn = codeOf(thrown)?.startsWith("FST_ERR_") === true;
  const status: unknown = Reflect.get(Object(thrown), "statusCode");
  if (!isItsOwn || typeof status !== "number" || status < 400 || status >= 500) return undefined;
  return new Fault("bad_request", { message: "The request is not one that this server can read." });
}

/** Returns the code of an error of Node or of the framework. */
export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Largest unused body that is read to its end, so that a simple client receives the error. */
const unprovenBytesMax = 256 * 1024;
const provenTimesLimit = 4;

/**
 * True if the rest of a body is read when a request is refused before it was read. Many clients send everything before
 * they read the answer, and would only see a broken pipe. A client without a key cannot make this process read much.
 */
function isReadOn(headers: IncomingHttpHeaders, code: FaultCode, bodyBytesMax: number): boolean {
  // A client that sent `Expect` gets no `100 Continue`, and may send its body or not.
  if (headers["transfer-encoding"] !== undefined || headers.expect !== undefined) return false;
  const bytes = Number(headers["content-length"] ?? 0);
  return bytes <= (code === "request_too_large" ? bodyBytesMax * provenTimesLimit : unprovenBytesMax);
}

/** Returns OpenAI's error body. It always has these four keys. */
export function faultBody(fault: Fault) {
  const { type, wire } = faultEntry(fault.code);
  const code = wire === undefined ? fault.code : wire;
  return { error: { message: fault.message, type, param: fault.param ?? null, code } };
}

/** Returns the headers that official clients read beside the body: how long to wait, and whether to retry at all. */
export function faultHeaders(fault: Fault): Record<string, string> {
  const { status, retry, retryAfterSeconds } = faultEntry(fault.code);
  const waitSeconds = fault.retryAfterSeconds ?? retryAfterSeconds;
  return {
    ...(waitSeconds === undefined ? {} : { "retry-after": String(waitSeconds) }),
    ...(retry === false ? { "x-should-retry": "false" } : {}),
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
}
