import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/token.ts";
import { AnswersUnderWay } from "./edge/answers-under-way.ts";
import { boundUploads } from "./edge/bound-uploads.ts";
import { BrokenConnections, type ConnectionMeter } from "./edge/broken-connections.ts";
import { unknownUrl } from "./edge/unknown-url.ts";
import { adoptError, type BodyLimit } from "./intake/adopt-error.ts";
import { framingFault } from "./intake/framing-fault.ts";
import { followRequest, followRequests, type RequestMeter } from "./edge/follow-requests.ts";
import { knowEveryMethod } from "./edge/refuse-other-methods.ts";
import { carryStates } from "./edge/request-state.ts";
import { tellFault, tellFaults } from "./edge/tell-faults.ts";
import { TimedResponse } from "./edge/timed-response.ts";

/** How long a server waits for what its clients send. */
export interface Patience {
  /** From the connection, or the answer before, to the end of a request's head. */
  readonly headersMs: number;
  /** The same to the end of its body. */
  readonly requestMs: number;
  /** How often it looks who has used these up. */
  readonly lookEveryMs: number;
}

const usualPatience: Patience = { headersMs: 10_000, requestMs: 120_000, lookEveryMs: 1_000 };

interface ServerOptions extends BodyLimit {
  readonly log: Log;
  readonly trustedProxies?: readonly string[];
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** Once true, connections are closed with their next answer, so that clients go elsewhere. */
  readonly leaving?: () => boolean;
  /** Once true, what still arrives on open connections is turned away. */
  readonly draining: () => boolean;
  readonly patience?: Patience;
  readonly meter?: RequestMeter & ConnectionMeter;
}

const keepAliveTimeoutMs = 72_000;
const urlParamCharactersMax = 1_024;
/** What is read of a request's head before it is judged: more than is allowed, so that it can be said what is too much. */
const headBytesReadMax = 32 * 1024;

/**
 * The HTTP server without its routes: how every request gets an id, every failure the contract's body, and every body
 * is left as bytes until its sender has proved a key.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const { log, bodyBytesMax, trustedProxies = [], patience = usualPatience, meter } = options;
  const underWay = new AnswersUnderWay();
  const broken = new BrokenConnections({ underWay, log, meter });
  const server: FastifyInstance = fastify({
    ...socketOptions(options.tls, patience),
    requestTimeout: patience.requestMs,
    logger: false,
    genReqId: () => newToken("req_"),
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: bodyBytesMax,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    routerOptions: { maxParamLength: urlParamCharactersMax, caseSensitive: true },
    clientErrorHandler: (error, socket) => broken.answer(error, socket),
    frameworkErrors: (error, request, reply: FastifyReply) => {
      reply.header("x-request-id", request.id);
      followRequest({ request, reply }, { log, meter });
      void tellFault(adoptError(error, options), { request, reply, ...options });
    },
  });
  // None is left out in silence; how many there may be is ours to say.
  server.server.maxHeadersCount = 0;
  // What Node would answer by itself, without a body or an id, is left to us.
  for (const event of ["checkContinue", "checkExpectation"])
    server.server.on(event, (request, response) => server.server.emit("request", request, response));
  server.server.prependListener("request", (request, response) => underWay.begin(request.socket, response));
  broken.refuseTunnels(server.server);
  knowEveryMethod(server);
  carryStates(server);

  followRequests(server, { log, meter });
  server.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    if (options.leaving?.()) reply.header("connection", "close");
    const fault = edgeFault(request, { underWay, draining: options.draining });
    if (fault !== undefined && fault.code !== "unknown_url") reply.header("connection", "close");
    done(fault);
  });
  boundUploads(server, bodyBytesMax);
  tellFaults(server, options);
  return server;
}

/** What keeps a request out before anything is asked of it, whoever sent it. */
function edgeFault(
  request: FastifyRequest,
  { underWay, draining }: { readonly underWay: AnswersUnderWay; readonly draining: () => boolean },
): Fault | undefined {
  const { method = "", url = "", httpVersion, rawHeaders, headers, socket } = request.raw;
  const answersUnderWay = underWay.countOn(socket);
  const framing = framingFault({ method, url, httpVersion, rawHeaders, headers, answersUnderWay });
  if (framing !== undefined) return framing;
  if (draining()) return new Fault("shutting_down", { message: "This gateway shuts down; send the request again." });
  return request.is404 ? unknownUrl(request) : undefined;
}

function socketOptions(tls: ServerOptions["tls"], patience: Patience) {
  const own = {
    requireHostHeader: false,
    ServerResponse: TimedResponse,
    maxHeaderSize: headBytesReadMax,
    headersTimeout: patience.headersMs,
    connectionsCheckingInterval: patience.lookEveryMs,
  };
  return tls === undefined ? { http: own } : { https: { ...tls, ...own } };
}
