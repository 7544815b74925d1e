import type { IncomingMessage } from "node:http";
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { AnswersUnderWay, UnreadAnswers, TimedResponse } from "./http/timed-response.ts";
import type { AnswerBounds, HeldBytesMeter } from "./http/timed-response.ts";
import { readBodies } from "./http/bound-uploads.ts";
import { limitConnections, BrokenConnections } from "./http/bound-connections.ts";
import type { ConnectionBounds, ConnectionMeter } from "./http/bound-connections.ts";
import { unknownUrl, registerMethods, answerFault, answerFaults, adoptError } from "./http/answer-faults.ts";
import type { BodyLimit } from "./http/answer-faults.ts";
import { framingFault, unexpectedBody } from "./http/framing-fault.ts";
import { addRequestState, type FaultShape, followRequest, type RequestMeter } from "./http/request-state.ts";
import { asksForWebSocket, isForWebSocket, routeUpgrades } from "./http/route-upgrades.ts";

/** The longest waits of a server for the input of its clients. */
export interface ClientTimeouts {
  /** From the connection, or the previous answer, to the end of a request's head. */
  readonly headersMs: number;
  /** From the connection, or the previous answer, to the end of a request's body. */
  readonly requestMs: number;
  /** Interval at which the server checks connections for these timeouts. */
  readonly lookEveryMs: number;
}

const defaultClientTimeouts: ClientTimeouts = { headersMs: 10_000, requestMs: 120_000, lookEveryMs: 1_000 };

interface ServerOptions extends BodyLimit {
  readonly log: Log;
  /** The shapes of errors of APIs that have another one than OpenAI's. */
  readonly faultShapes?: readonly FaultShape[];
  /** Gets the line of each request; otherwise `log` does. */
  readonly requestLog?: Log | undefined;
  readonly trustedProxies?: readonly string[];
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** Connections close after their next answer while it drains, so that clients go elsewhere. */
  readonly lifecycle?: Pick<Lifecycle, "draining">;
  /** Requests that arrive on open connections after it has begun are refused. */
  readonly closing?: { readonly begun: boolean };
  /** The path at which requests may become WebSockets; none by default. */
  readonly webSocketsAt?: string | undefined;
  readonly patience?: ClientTimeouts;
  readonly connections?: ConnectionBounds;
  readonly answers?: AnswerBounds;
  readonly clock?: Pick<Clock, "now" | "every">;
  readonly meter?: RequestMeter & ConnectionMeter & HeldBytesMeter;
}

const usualConnections: ConnectionBounds = { connectionsMax: 1_024, connectionsPerAddressMax: 1_024 };
const usualAnswers: AnswerBounds = { clientStallMs: 30_000 };

const keepAliveTimeoutMs = 72_000;
const urlParamCharactersMax = 1_024;
/**
 * Bytes of a request's head that are read before it is judged. The limit allows fewer, so that the error can name what
 * is too large.
 */
const headBytesReadMax = 32 * 1024;

/**
 * Creates the HTTP server without its routes. Every request gets an id, every failure the contract's body. Every body
 * stays bytes until its sender has proved a key.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const {
    log,
    requestLog = log,
    bodyBytesMax,
    faultShapes = [],
    trustedProxies = [],
    patience = defaultClientTimeouts,
    meter,
    clock = systemClock,
  } = options;
  const followed = { log: requestLog, faultShapes, meter };
  const underWay = new AnswersUnderWay();
  const broken = new BrokenConnections({ underWay, log, meter });
  const server: FastifyInstance = fastify({
    ...socketOptions(options, { patience, underWay }),
    requestTimeout: patience.requestMs,
    logger: false,
    genReqId: () => newToken("req_"),
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: bodyBytesMax,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    routerOptions: { maxParamLength: urlParamCharactersMax, caseSensitive: true, ignoreTrailingSlash: true },
    clientErrorHandler: (error, socket) => broken.answer(error, socket),
    frameworkErrors: (error, request, reply: FastifyReply) => {
      followRequest({ request, reply }, followed);
      void answerFault(adoptError(error, options), { request, reply, ...options });
    },
  });
  // 0 lifts Node's limit, so that Node drops no header silently; `framingFault` limits their number.
  server.server.maxHeadersCount = 0;
  // Node would answer these events by itself, without a body or an id. They are handled as requests instead.
  for (const event of ["checkContinue", "checkExpectation"])
    server.server.on(event, (request, response) => server.server.emit("request", request, response));
  server.server.prependListener("request", (request, response) => underWay.begin(request.socket, response));
  broken.refuseTunnels(server.server);
  if (options.webSocketsAt !== undefined) routeUpgrades(server.server, { path: options.webSocketsAt, underWay });
  limitConnections(server.server, options.connections ?? usualConnections, { trustedProxies, clock, log, meter });
  const unread = new UnreadAnswers({ ...(options.answers ?? usualAnswers), underWay, clock, log, meter });
  server.addHook("onListen", async () => unread.start());
  server.addHook("onClose", async () => unread.stop());
  registerMethods(server);
  addRequestState(server);
  server.addHook("onRequest", (request, reply, done) => {
    followRequest({ request, reply }, followed);
    if (reply.raw instanceof TimedResponse) reply.raw.requestId = request.id;
    if (options.lifecycle?.draining) reply.header("connection", "close");
    const { webSocketsAt, closing } = options;
    const fault = edgeFault(request, { underWay, webSocketsAt, isClosing: closing?.begun ?? false });
    // A 426 has to name a protocol that is spoken.
    if (fault?.code === "upgrade_refused") reply.header("upgrade", "HTTP/1.1");
    if (fault !== undefined && fault.code !== "unknown_url") reply.header("connection", "close");
    done(fault);
  });
  readBodies(server, bodyBytesMax);
  answerFaults(server, options);
  return server;
}

/** Returns the fault that refuses a request before its key is checked, whoever sent it; undefined if there is none. */
function edgeFault(
  request: FastifyRequest,
  {
    underWay,
    webSocketsAt,
    isClosing,
  }: { readonly underWay: AnswersUnderWay; readonly webSocketsAt: string | undefined; readonly isClosing: boolean },
): Fault | undefined {
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
  if (isClosing) return new Fault("shutting_down", { message: "This gateway shuts down; send the request again." });
  return request.is404 ? unknownUrl(request) : undefined;
}

function socketOptions(
  { tls, webSocketsAt: path }: ServerOptions,
  { patience, underWay }: { readonly patience: ClientTimeouts; readonly underWay: AnswersUnderWay },
) {
  const own = {
    requireHostHeader: false,
    shouldUpgradeCallback: (request: IncomingMessage) =>
      path !== undefined && isForWebSocket(request, { path, underWay }),
    ServerResponse: TimedResponse,
    maxHeaderSize: headBytesReadMax,
    headersTimeout: patience.headersMs,
    connectionsCheckingInterval: patience.lookEveryMs,
  };
  return tls === undefined ? { http: own } : { https: { ...tls, handshakeTimeout: patience.headersMs, ...own } };
}
