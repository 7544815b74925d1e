import { type IncomingMessage, METHODS } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { scrub, type Log } from "#shared/process/log.ts";
import { adoptError, type BodyLimit, unreadBody, faultBody, faultHeaders } from "./adopt-error.ts";
import { pathOf } from "./follow-requests.ts";
import { logFieldsOf, stateOf } from "./request-state.ts";

interface Means extends BodyLimit {
  readonly log: Log;
}

/** Answers every error that a server's routes throw with one kind of body and a code from one closed list. */
export function answerFaults(server: FastifyInstance, means: Means): void {
  server.setErrorHandler(async (thrown, request, reply) => {
    const gone = request.raw.destroyed && !request.raw.complete;
    const fault = gone ? clientLeft() : adoptError(thrown, means);
    const fields = { ...logFieldsOf(request), code: fault.code, internal: fault.reason };
    if (faultEntry(fault.code).status >= 500) means.log.warn(fields, "request failed");
    else if (fault.code === "key_invalid" && fault.internal !== undefined) means.log.warn(fields, "request refused");
    else means.log.debug(fields, "request refused");
    await answerFault(fault, { request, reply, ...means });
    return reply;
  });
  server.setNotFoundHandler(async (request) => {
    throw unknownUrl(request);
  });
}

/** Sends the body of a fault, and either reads or cuts off the unread rest of the request's body. */
export async function answerFault(
  fault: Fault,
  to: BodyLimit & { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<void> {
  const { request, reply, bodyBytesMax } = to;
  const state = stateOf(request);
  state.faultCode = fault.code;
  state.reason = fault.reason;
  if (!request.raw.complete) {
    const rest = unreadBody({ code: fault.code, headers: request.headers, bodyBytesMax });
    if (rest === "close") {
      reply.header("connection", "close");
      closeUnread(request.raw);
    }
  }
  const { error } = faultBody(fault);
  // A message may quote the client's input, and a client may send its key in the wrong place.
  const body = { error: { ...error, message: scrub(error.message) } };
  reply.code(faultEntry(fault.code).status).headers(faultHeaders(fault)).send(body);
}

function clientLeft(): Fault {
  return new Fault("client_closed", { message: "The client closed the connection before its request was complete." });
}

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

const pathCharactersTold = 200;

/** Chat URLs of other APIs, which this gateway does not serve. */
const otherChats = /^(?:\/v1)?\/messages$|^\/api\/(?:chat|generate)$/;
const keptResponses = /^\/v1\/responses\/|^\/v1\/conversations(?:\/|$)/;
const chats = "/v1/chat/completions";
const reference = "/docs";

/** Returns the fault for an unknown URL, with a hint when the intended URL is plain. */
export function unknownUrl(request: FastifyRequest): Fault {
  const path = pathOf(request).slice(0, pathCharactersTold);
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
    path.replace(/\/+$/, ""),
    path.replace(/\/{2,}/g, "/"),
  ];
  const meant = near.find((url) => isHere(url));
  if (meant !== undefined) return ` Did you mean ${meant}?`;
  if (!isHere(reference, "GET")) return "";
  const chatsAre = otherChats.test(path) ? ` Chats are asked for at ${chats}.` : "";
  const isNotKept = keptResponses.test(path) ? " No response is kept here: send the whole conversation each time." : "";
  return `${chatsAre}${isNotKept} The endpoints are listed at ${reference}.`;
}

/** Node never makes a request of CONNECT: it becomes a tunnel, or nothing. */
const neverRouted = "CONNECT";
const everyMethod = METHODS.filter((method) => method !== neverRouted);

/** Registers every HTTP method with the server, so that routes can refuse it by name. */
export function knowEveryMethod(server: FastifyInstance): void {
  for (const method of everyMethod) {
    if (!server.supportedMethods.includes(method)) server.addHttpMethod(method);
  }
}

/** Answers the other methods of an existing route with 405 and its `allow` header, before a key is asked for. */
export function refuseOtherMethods(server: FastifyInstance, url: string, allowed: readonly string[]): void {
  server.route({
    method: everyMethod.filter((method) => !allowed.includes(method)),
    url,
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
