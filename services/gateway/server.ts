import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { finished } from "node:stream/promises";
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { faultEntry } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import { scrub, type Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/token.ts";
import { callerIfProven } from "./access/caller.ts";
import { adoptError, adoptParserError, type BodyLimit } from "./intake/adopt-error.ts";
import { faultBody, faultHeaders } from "./openai/fault-body.ts";
import { unreadBody } from "./intake/unread-body.ts";
import { UploadRoom } from "./intake/upload-room.ts";

interface ServerOptions extends BodyLimit {
  readonly log: Log;
  readonly trustedProxies?: readonly string[];
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** Once true, what still arrives on open connections is turned away. */
  readonly draining: () => boolean;
}

const headersTimeoutMs = 10_000;
const requestTimeoutMs = 120_000;
const keepAliveTimeoutMs = 72_000;
const urlParamCharactersMax = 1_024;

/**
 * The HTTP server without its routes: how every request gets an id, every failure the contract's body, and every body
 * is left as bytes until its sender has proved a key.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const { log, bodyBytesMax, tls, trustedProxies = [] } = options;
  const server: FastifyInstance = fastify({
    ...(tls === undefined ? { http: { requireHostHeader: false } } : { https: { ...tls, requireHostHeader: false } }),
    logger: false,
    genReqId: () => `req_${newToken()}`,
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    routerOptions: { maxParamLength: urlParamCharactersMax, caseSensitive: true },
    clientErrorHandler: (error, socket) => answerParserError({ error, socket, log }),
    frameworkErrors: (error, request, reply: FastifyReply) => {
      const fault = adoptError(error, options);
      void reply
        .code(faultEntry(fault.code).status)
        .headers({ ...faultHeaders(fault), "x-request-id": request.id })
        .send(faultBody(fault));
    },
  });
  server.server.headersTimeout = headersTimeoutMs;
  // What Node would answer by itself, without a body or an id, is left to us.
  server.server.on("checkExpectation", (request, response) => server.server.emit("request", request, response));

  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  server.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new Fault("bad_request", { message: "The request has no Host header." });
    }
    if (options.draining()) {
      reply.header("connection", "close");
      throw new Fault("shutting_down", { message: "This gateway shuts down; send the request again." });
    }
    if (request.is404) throw unknownUrl(request);
  });
  const room = new UploadRoom();
  const rooms = new WeakMap<FastifyRequest, () => void>();
  server.addHook("preParsing", async (request, reply, payload) => {
    insistOnPlainJson(request);
    const whose = callerIfProven(request)?.key.id ?? request.ip;
    const leave = room.enter({ headers: request.headers, bodyBytesMax, whose });
    rooms.set(request, leave);
    if (reply.raw.closed) leave();
    else reply.raw.once("close", leave);
    return payload;
  });
  server.addHook("preHandler", async (request) => rooms.get(request)?.());
  server.addHook("onResponse", async (request, reply) => {
    const fields = { request: request.id, method: request.method, path: pathOf(request), status: reply.statusCode };
    const isProbe = request.url === "/healthz" || request.url === "/readyz";
    log[isProbe ? "debug" : "info"]({ ...fields, ms: Math.round(reply.elapsedTime) }, "request");
  });

  server.setErrorHandler(async (thrown, request, reply) => {
    const gone = request.raw.destroyed && !request.raw.complete;
    const fault = gone ? clientLeft() : adoptError(thrown, options);
    const { status } = faultEntry(fault.code);
    const fields = { request: request.id, code: fault.code, internal: fault.internal };
    if (status >= 500) log.warn(fields, "request failed");
    else log.debug(fields, "request refused");
    if (!request.raw.complete) {
      const rest = unreadBody({ code: fault.code, headers: request.headers, bodyBytesMax });
      if (rest === "read-on") await readToEnd(request.raw);
      else reply.header("connection", "close");
    }
    return reply.code(status).headers(faultHeaders(fault)).send(faultBody(fault));
  });
  server.setNotFoundHandler(async (request) => {
    throw unknownUrl(request);
  });
  return server;
}

/** A route that exists answers its other methods with 405 and says which it has, before it asks for a key. */
export function refuseOtherMethods(server: FastifyInstance, url: string, allowed: readonly string[]): void {
  const every = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
  server.route({
    method: every.filter((method) => !allowed.includes(method)),
    url,
    // Here and not in the handler: nobody has proved a key, so no body is read for it.
    onRequest: async (request, reply) => {
      reply.header("allow", allowed.join(", "));
      throw new Fault("method_not_allowed", {
        message: `${request.method} is not allowed here; use ${allowed.join(" or ")}.`,
      });
    },
    handler: () => undefined,
  });
}

/** Whatever stands in a URL may be a key. */
function unknownUrl(request: FastifyRequest): Fault {
  const path = scrub(pathOf(request)).slice(0, 200);
  return new Fault("unknown_url", { message: `There is nothing at ${request.method} ${path}.` });
}

function clientLeft(): Fault {
  return new Fault("client_closed", { message: "The client closed the connection before its request was complete." });
}

async function readToEnd(request: IncomingMessage): Promise<void> {
  await finished(request.resume(), { writable: false }).catch(() => undefined);
}

function pathOf(request: FastifyRequest): string {
  const query = request.url.indexOf("?");
  return query === -1 ? request.url : request.url.slice(0, query);
}

function insistOnPlainJson(request: FastifyRequest): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new Fault("unsupported_media_type", { message: "Send the body as it is, without Content-Encoding." });
  }
  const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers["content-type"] ?? "")?.[1];
  if (charset !== undefined && charset.toLowerCase() !== "utf-8") {
    throw new Fault("unsupported_media_type", { message: "Send the body as UTF-8." });
  }
}

function answerParserError(failed: { error: Error; socket: Socket; log: Log }): void {
  const { error, socket, log } = failed;
  const fault = adoptParserError(error);
  // The error itself holds the bytes that were read, key and prompt among them.
  log.debug({ code: fault.code }, "a connection sent no HTTP that could be read");
  if (socket.destroyed) return;
  if (!socket.writable || isAnswering(socket)) {
    socket.destroy();
    return;
  }
  const { status } = faultEntry(fault.code);
  const body = JSON.stringify(faultBody(fault));
  const head = [
    `HTTP/1.1 ${status} ${reasons[status] ?? "Error"}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: req_${newToken()}`,
    ...Object.entries(faultHeaders(fault)).map(([name, value]) => `${name}: ${value}`),
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/** Whether a response is under way on this connection, in the middle of which nothing may be written. */
function isAnswering(socket: Socket): boolean {
  return Reflect.get(Object(Reflect.get(socket, "_httpMessage")), "headersSent") === true;
}

const reasons: Record<number, string> = {
  400: "Bad Request",
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
};
