import type { Readable } from "node:stream";
import { getHeapStatistics } from "node:v8";
import { errorCodes, type FastifyInstance, type FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import { insistOnPlainJson } from "./framing-fault.ts";
import { UploadRoom, type ArrivingBody } from "./upload-room.ts";
import { stateOf } from "./request-state.ts";
import { atClose } from "./timed-response.ts";

/** Pieces of a body that are joined into one buffer. Each piece takes memory of its own, however small it is. */
const piecesMax = 1_024;

/**
 * Reads every body as bytes, as long as `UploadRoom` has room for it. A client that sends `Expect` gets its `100
 * Continue` here: after its key is proved, and never before.
 */
export function readBodies(server: FastifyInstance, bodyBytesMax: number): void {
  const room = new UploadRoom({ bodyBytesMax });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", (request, payload, done) => {
    const arriving = room.enter(stateOf(request).key ?? request.ip);
    stateOf(request).arriving = arriving;
    readBody(payload, { arriving, bodyBytesMax, declaredBytes: declaredBytesOf(request), done });
  });

  server.addHook("preParsing", (request, reply, payload, done) => {
    if (mayHaveBody(request)) {
      insistOnPlainJson(request.headers);
      atClose(reply.raw, () => stateOf(request).arriving?.leave());
      const asksFirst = request.headers.expect !== undefined && request.raw.httpVersion === "1.1";
      if (asksFirst && (declaredBytesOf(request) ?? 0) <= bodyBytesMax) reply.raw.writeContinue();
    }
    done(null, payload);
  });
  server.addHook("preHandler", (request, _reply, done) => {
    stateOf(request).arriving?.leave();
    done();
  });
}

function readBody(
  payload: Readable,
  means: {
    readonly arriving: ArrivingBody;
    readonly bodyBytesMax: number;
    readonly declaredBytes: number | undefined;
    readonly done: (error: Error | null, body?: Buffer) => void;
  },
): void {
  const { arriving, bodyBytesMax, declaredBytes, done } = means;
  const joined: Buffer[] = [];
  let pieces: Buffer[] = [];
  let bytes = 0;

  const finish = (error: Error | null, body?: Buffer): void => {
    payload.off("data", onData).off("end", onEnd).off("error", finish);
    if (error !== null) arriving.leave();
    done(error, body);
  };
  const onData = (piece: Buffer): void => {
    bytes += piece.byteLength;
    if (bytes > bodyBytesMax) return finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    try {
      arriving.grow(piece.byteLength);
    } catch (fault) {
      return finish(fault as Error);
    }
    pieces.push(piece);
    if (pieces.length < piecesMax) return undefined;
    joined.push(Buffer.concat(pieces));
    pieces = [];
    return undefined;
  };
  const onEnd = (): void => {
    const isWhole = declaredBytes === undefined || declaredBytes === bytes;
    if (isWhole) finish(null, Buffer.concat([...joined, ...pieces], bytes));
    else finish(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH());
  };

  if (declaredBytes !== undefined && declaredBytes > bodyBytesMax) {
    finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    return;
  }
  payload.on("data", onData).on("end", onEnd).on("error", finish);
}

function declaredBytesOf({ headers: { "content-length": length } }: FastifyRequest): number | undefined {
  return length === undefined ? undefined : Number(length);
}

/**
 * True if the method takes a body. `framingFault` has refused a GET or HEAD with a body; a content type alone makes no
 * body.
 */
function mayHaveBody(request: FastifyRequest): boolean {
  return request.method !== "GET" && request.method !== "HEAD";
}

/** Share of the heap above which new requests are refused; the rest is for the running ones. */
export const heapShareMax = 0.9;
/** Interval between two readings of the heap, however many requests come. */
const lookAgainMs = 100;

/** Returns the used share of this process's heap, from 0 to 1. */
export function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}

/**
 * Refuses requests to a scope of routes while the heap is nearly full. A process that runs out of heap dies, and all
 * its running requests with it.
 */
export function refuseWithoutHeapRoom(
  scope: FastifyInstance,
  means: { readonly clock: Pick<Clock, "now">; readonly share?: () => number },
): void {
  const { clock, share = heapShare } = means;
  let lookedAtMs = -Infinity;
  let isFull = false;
  scope.addHook("onRequest", (_request, _reply, done) => {
    const nowMs = clock.now();
    if (nowMs - lookedAtMs >= lookAgainMs) {
      lookedAtMs = nowMs;
      isFull = share() > heapShareMax;
    }
    done(isFull ? full() : undefined);
  });
}

function full(): Fault {
  return new Fault("server_is_overloaded", {
    message: `The memory of this gateway is full to ${heapShareMax * 100} % (heapShareMax).`,
  });
}
