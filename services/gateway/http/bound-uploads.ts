import type { Readable } from "node:stream";
import { getHeapStatistics } from "node:v8";
import { errorCodes, type FastifyInstance, type FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import { assertPlainJson, formBoundary } from "./guard-edge.ts";

/** Pieces of a body that are joined into one buffer. Each piece takes memory of its own, however small it is. */
const piecesMax = 1_024;

declare module "fastify" {
  interface FastifyContextConfig {
    /** True for a route whose body is a form with files. Every other body is JSON. */
    readonly takesForm?: boolean;
    /** True for the answer of a URL to the methods that it does not have. */
    readonly refusesMethod?: boolean;
  }
}

/**
 * Reads every body as bytes, as long as `UploadRoom` has room for it. A client that sends `Expect` gets its `100
 * Continue` here: after its key is proved, and never before.
 */
export function readBodies(server: FastifyInstance, bodyBytesMax: number): void {
  const room = new UploadRoom({ bodyBytesMax });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(["application/json", "multipart/form-data"], (request, payload, done) => {
    readBody(request, payload, { bodyBytesMax, done });
  });

  server.addHook("preParsing", (request, reply, payload, done) => {
    request.state.arriving = new ArrivingBody(room, request.state.key ?? request.ip);
    // `framingFault` has refused a GET or HEAD with a body. A content type alone makes no body.
    if (request.method !== "GET" && request.method !== "HEAD") {
      const { headers } = request;
      if (request.routeOptions.config.takesForm === true) formBoundary(headers);
      else assertPlainJson(headers);
      const asksFirst = headers.expect !== undefined && request.raw.httpVersion === "1.1";
      if (asksFirst && Number(headers["content-length"] ?? 0) <= bodyBytesMax) reply.raw.writeContinue();
    }
    done(null, payload);
  });
}

function readBody(
  { headers, state: { arriving } }: FastifyRequest,
  payload: Readable,
  { bodyBytesMax, done }: { bodyBytesMax: number; done: (error: Error | null, body?: Buffer) => void },
): void {
  const { "content-length": length } = headers;
  const declaredBytes = length === undefined ? undefined : Number(length);
  const joined: Buffer[] = [];
  let pieces: Buffer[] = [];
  let bytes = 0;

  const finish = (error: Error | null, body?: Buffer): void => {
    payload.off("data", onData).off("end", onEnd).off("error", finish);
    arriving?.leave();
    done(error, body);
  };
  const onData = (piece: Buffer): void => {
    bytes += piece.byteLength;
    if (bytes > bodyBytesMax) return finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    try {
      arriving?.grow(piece.byteLength);
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
  dependencies: { readonly clock: Pick<Clock, "now">; readonly share?: () => number },
): void {
  const { clock, share = heapShare } = dependencies;
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

const mib = 1024 * 1024;

declare module "./request-state.ts" {
  interface RequestState {
    /** The memory that the request takes for its body while it arrives, and for what it reads of the store. */
    arriving?: ArrivingBody;
  }
}

/** Bytes of all bodies that are arriving at a gateway, counted as they come. */
export const uploadBytesMax = 512 * mib;

/** The part of `uploadBytesMax` that large bodies cannot take, so that small ones always find room. */
const smallLaneShare = 1 / 8;
/** Size of the largest small body. */
export const smallBodyBytesMax = 256 * 1024;

/** The part of a lane that one sender may take. */
const senderShare = 1 / 4;
const smallSenderShare = 1 / 16;

/** Counts by key, such as the open connections of each network. A key whose count is zero takes no memory. */
export class KeyedCounts {
  readonly #counts = new Map<string, number>();

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Adds to the count of a key, or takes from it if `more` is negative. Returns the new count. */
  add(key: string, more: number): number {
    const count = (this.#counts.get(key) ?? 0) + more;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
    return count;
  }
}

/** One part of the room, with a limit for all senders together and a limit for each. */
class Lane {
  readonly #bytesMax: number;
  readonly #senderBytesMax: number;
  readonly #takenBy = new KeyedCounts();
  #taken = 0;

  constructor(bytesMax: number, senderBytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#senderBytesMax = senderBytesMax;
  }

  /** Returns false, and takes nothing, when the lane or the sender's part of it is full. */
  take(sender: string, bytes: number): boolean {
    this.#taken += bytes;
    if (this.#takenBy.add(sender, bytes) <= this.#senderBytesMax && this.#taken <= this.#bytesMax) return true;
    this.giveBack(sender, bytes);
    return false;
  }

  giveBack(sender: string, bytes: number): void {
    this.#taken -= bytes;
    this.#takenBy.add(sender, -bytes);
  }
}

/**
 * The memory for bodies while they arrive. A body counts with the bytes that have come, never with its
 * `Content-Length`. A sender takes only as many bytes from others as it has sent.
 */
export class UploadRoom {
  readonly small: Lane;
  readonly large: Lane;

  /** A sender's share of `large` has room for at least one body of the largest size. */
  constructor({ bodyBytesMax, bytesMax = uploadBytesMax }: { bodyBytesMax: number; bytesMax?: number }) {
    const smallBytesMax = bytesMax * smallLaneShare;
    const largeBytesMax = bytesMax - smallBytesMax;
    this.small = new Lane(smallBytesMax, smallBytesMax * smallSenderShare);
    this.large = new Lane(largeBytesMax, Math.max(largeBytesMax * senderShare, bodyBytesMax));
  }
}

/**
 * One body while it arrives. It moves to the lane of large bodies when it grows, or when the lane of small ones is
 * full.
 */
export class ArrivingBody {
  readonly #room: UploadRoom;
  readonly #sender: string;
  #lane: Lane;
  #bytes = 0;

  /** `sender` is the id of a key, or an address where no key is proved. */
  constructor(room: UploadRoom, sender: string) {
    this.#room = room;
    this.#sender = sender;
    this.#lane = room.small;
  }

  /** Counts bytes that have come. Throws `server_is_overloaded` when there is no room for them. */
  grow(bytes: number): void {
    const { small, large } = this.#room;
    const grown = this.#bytes + bytes;
    const isTaken =
      this.#lane === small && (grown > smallBodyBytesMax || !small.take(this.#sender, bytes))
        ? this.#moveTo(large, grown)
        : this.#lane === small || large.take(this.#sender, bytes);
    if (!isTaken) throw noRoom();
    this.#bytes = grown;
  }

  /** Releases all bytes of the body. A second call does nothing. */
  leave(): void {
    this.#lane.giveBack(this.#sender, this.#bytes);
    this.#bytes = 0;
  }

  #moveTo(lane: Lane, bytes: number): boolean {
    this.leave();
    this.#lane = lane;
    return lane.take(this.#sender, bytes);
  }
}

function noRoom(): Fault {
  return new Fault("server_is_overloaded", {
    message: `The requests that are arriving here fill ${uploadBytesMax} bytes, or this sender's share of them (uploadBytesMax). Send the request again in a moment.`,
  });
}
