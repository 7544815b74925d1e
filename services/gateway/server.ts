import type { IncomingMessage } from "node:http";
import { fastify, type FastifyInstance, type FastifyReply } from "fastify";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { AnswersUnderWay, UnreadAnswers, TimedResponse } from "./http/timed-response.ts";
import type { AnswerBounds, HeldBytesMeter } from "./http/timed-response.ts";
import { readBodies } from "./http/bound-uploads.ts";
import { limitConnections, BrokenConnections } from "./http/bound-connections.ts";
import type { ConnectionBounds, ConnectionMeter } from "./http/bound-connections.ts";
import { registerMethods, answerFault, answerFaults, adoptError } from "./http/answer-faults.ts";
import type { BodyLimit } from "./http/answer-faults.ts";
import { type EdgeTerms, guardEdge } from "./http/guard-edge.ts";
import { type BeginTrace, type FaultShape, followRequest } from "./http/request-state.ts";
import { newRequestId, type RequestMeter, untraced } from "./http/request-state.ts";
import { isForWebSocket, routeUpgrades } from "./http/route-upgrades.ts";

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

interface ServerOptions extends BodyLimit, EdgeTerms {
  readonly log: Log;
  /** The shapes of errors of APIs that have another one than OpenAI's. */
  readonly faultShapes?: readonly FaultShape[];
  /** Gets the line of each request; otherwise `log` does. */
  readonly requestLog?: Log | undefined;
  readonly trustedProxies?: readonly string[];
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly patience?: ClientTimeouts;
  readonly connections?: ConnectionBounds;
  readonly answers?: AnswerBounds;
  readonly clock?: Pick<Clock, "now" | "every">;
  readonly meter?: RequestMeter & ConnectionMeter & HeldBytesMeter;
  readonly beginTrace?: BeginTrace | undefined;
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
    beginTrace = () => untraced,
    clock = systemClock,
  } = options;
  const followed = { log: requestLog, faultShapes, meter, beginTrace };
  const underWay = new AnswersUnderWay();
  const broken = new BrokenConnections({ underWay, log, meter });
  const server: FastifyInstance = fastify({
    ...socketOptions(options, { patience, underWay }),
    requestTimeout: patience.requestMs,
    logger: false,
    genReqId: newRequestId,
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
  underWay.watch(server.server);
  broken.refuseTunnels(server.server);
  if (options.webSocketsAt !== undefined) routeUpgrades(server.server, { path: options.webSocketsAt, underWay });
  limitConnections(server.server, options.connections ?? usualConnections, { trustedProxies, clock, log, meter });
  const unread = new UnreadAnswers({ ...(options.answers ?? usualAnswers), underWay, clock, log, meter });
  server.addHook("onListen", async () => unread.start());
  server.addHook("onClose", async () => unread.stop());
  registerMethods(server);
  guardEdge(server, { ...options, ...followed, underWay });
  readBodies(server, bodyBytesMax);
  answerFaults(server, options);
  return server;
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
