import { ServerResponse } from "node:http";
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, Server } from "node:http";
import type { FastifyReply } from "fastify";
import { once } from "node:events";
import type { Socket } from "node:net";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

export const processingHeader = "openai-processing-ms";

/** Makes browsers trust the content type of an answer, whatever the body looks like. */
export const noSniffing = ["x-content-type-options", "nosniff"] as const;

type HeadersToSend = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * A response that adds two headers by itself. One has the milliseconds from the arrival of the request's head; the
 * other forbids browsers to guess the content type. The class does this so that every way of writing is covered: whole
 * answers, streams and refusals.
 */
export class TimedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  readonly arrivedAtMs = performance.now();
  requestId: string | undefined;
  /** Aborts the work on this response's request. */
  leaving: AbortController | undefined;
  /** Bytes of this answer that this process holds and has not yet handed to Node. */
  keptBytes = 0;

  override writeHead(status: number, reasonOrHeaders?: string | HeadersToSend, headers?: HeadersToSend): this {
    const elapsedMs = String(Math.floor(performance.now() - this.arrivedAtMs));
    // Node writes a flat array of headers as it is when no header was set before. It reads none of them twice.
    if (Array.isArray(reasonOrHeaders)) reasonOrHeaders.push(processingHeader, elapsedMs, ...noSniffing);
    else if (!this.headersSent) this.setHeader(processingHeader, elapsedMs).setHeader(...noSniffing);
    return typeof reasonOrHeaders === "string"
      ? super.writeHead(status, reasonOrHeaders, headers)
      : super.writeHead(status, reasonOrHeaders);
  }
}

/** Returns the milliseconds since the arrival of the head of the request that this response answers. */
export function sinceArrivalMs(response: ServerResponse): number {
  return response instanceof TimedResponse ? performance.now() - response.arrivedAtMs : 0;
}

const pieceBytes = 64 * 1024;

/**
 * Writes a complete answer, past the framework's handling of unknown payloads. The headers are `lines` (a name, its
 * value, the next name) and the reply's current headers. Together they must be all headers of the answer.
 */
export function writeWhole(reply: FastifyReply, lines: string[], body: Buffer): void {
  lines.push("content-length", String(body.byteLength));
  addReplyHeaders(lines, reply);
  reply.hijack();
  reply.raw.writeHead(200, lines);
  writeInPieces(reply.raw, body);
}

/**
 * Writes one piece after the other as the client reads them. With one large piece the client's progress could not be
 * seen.
 */
function writeInPieces(response: ServerResponse, body: Buffer): void {
  let at = 0;
  const writeOn = (): void => {
    while (!response.destroyed) {
      const piece = body.subarray(at, at + pieceBytes);
      at += piece.byteLength;
      if (response instanceof TimedResponse) response.keptBytes = body.byteLength - at;
      if (at === body.byteLength) {
        response.end(piece);
        return;
      }
      if (!response.write(piece)) {
        response.once("drain", writeOn);
        return;
      }
    }
  };
  writeOn();
}

/** Appends the reply's current headers to `lines` in Node's flat form: a name, its value, the next name. */
export function addReplyHeaders(lines: string[], reply: FastifyReply): void {
  const headers = reply.getHeaders();
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) lines.push(name, String(value));
  }
}

/** Unsent answers of each connection, in the order of their requests. */
export class AnswersUnderWay {
  readonly #onConnection = new Map<Socket, ServerResponse[]>();

  /** Counts each answer of a server until it is sent or its connection has closed. Nothing sees a request before. */
  watch(server: Server): void {
    server.prependListener("request", ({ socket }, response) => this.begin(socket, response));
  }

  begin(connection: Socket, answer: ServerResponse): void {
    let answers = this.#onConnection.get(connection);
    if (answers === undefined) {
      answers = [];
      this.#onConnection.set(connection, answers);
      connection.once("close", () => this.#onConnection.delete(connection));
    }
    const all = answers;
    all.push(answer);
    // A connection nearly always has only one answer.
    answer.once("close", () => void all.splice(all.indexOf(answer), 1));
  }

  all(): Iterable<readonly [Socket, readonly ServerResponse[]]> {
    return this.#onConnection;
  }

  on(connection: Socket): readonly ServerResponse[] {
    return [...(this.#onConnection.get(connection) ?? [])];
  }

  countOn(connection: Socket): number {
    return this.#onConnection.get(connection)?.length ?? 0;
  }

  /** Resolves when these answers are sent, or their connection has closed. */
  async allSent(connection: Socket, answers = this.on(connection)): Promise<void> {
    const unsent = answers.filter((answer) => !answer.closed);
    await Promise.all(unsent.map((answer) => once(answer, "close").catch(() => undefined)));
  }
}

const kib = 1024;

/** Bytes that all answers together may hold in this process: those that wait for clients, and whole ones that grow. */
export const answerBytesMax = 512 * kib * kib;
/**
 * A stalled client gets one more `clientStallMs` for each of these many waiting bytes. A large piece shows no progress
 * while the client reads it.
 */
const stallBytes = 512 * kib;
const lookEveryMs = 250;

/** The reason for which an answer was cut: its client stalled, or all answers held too many bytes. */
export type CutReason = "stall" | "room";

/** Measures the bytes that answers hold, and counts cut answers. */
export interface HeldBytesMeter {
  answersHold(bytes: number): void;
  answerCut(reason: CutReason): void;
}

export interface AnswerBounds {
  /** A client is cut off when it reads nothing of its waiting answer for this long. */
  readonly clientStallMs: number;
  readonly bytesMax?: number;
}

interface Dependencies extends AnswerBounds {
  readonly underWay: AnswersUnderWay;
  readonly clock: Pick<Clock, "now" | "every">;
  readonly log: Pick<Log, "warn">;
  readonly meter?: HeldBytesMeter | undefined;
}

interface UnreadSocket {
  readonly socket: Socket;
  readonly answers: readonly ServerResponse[];
  readonly bytes: number;
}

/**
 * Bounds the memory that answers hold. A timer looks at all connections a few times a second, so every way of writing
 * is included. These are whole answers, streams, lists, and the rest of an answer whose job has ended.
 */
export class UnreadAnswers {
  readonly #dependencies: Dependencies;
  /** Progress of the client of each connection with waiting bytes: the bytes that it had taken, and when. */
  readonly #taken = new WeakMap<Socket, { readonly bytes: number; readonly atMs: number }>();
  #looking: Timer | undefined;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  start(): void {
    this.#looking = this.#dependencies.clock.every(lookEveryMs, () => this.#look());
  }

  stop(): void {
    this.#looking?.cancel();
  }

  #look(): void {
    const { underWay, clock, meter, bytesMax = answerBytesMax, clientStallMs } = this.#dependencies;
    const nowMs = clock.now();
    const all: UnreadSocket[] = [];
    for (const [socket, answers] of underWay.all()) {
      if (answers.length > 0) all.push({ socket, answers: [...answers], bytes: sumOf(answers) });
    }
    for (const waiting of all) {
      if (this.#isStalled(waiting.socket, nowMs)) {
        this.#cut(waiting, "stall", `The client took nothing of the answer for ${clientStallMs} ms (clientStallMs).`);
      }
    }
    let held = all.reduce((sum, { bytes }) => sum + bytes, 0);
    meter?.answersHold(held);
    if (held <= bytesMax) return;
    for (const waiting of all.toSorted((one, other) => other.bytes - one.bytes)) {
      if (held <= bytesMax) return;
      held -= waiting.bytes;
      this.#cut(
        waiting,
        "room",
        `All answers together hold more than ${bytesMax} bytes (answerBytesMax), and this one the most of them.`,
      );
    }
  }

  #isStalled(socket: Socket, nowMs: number): boolean {
    const waitingBytes = socket.writableLength;
    if (waitingBytes === 0) {
      this.#taken.delete(socket);
      return false;
    }
    const bytes = socket.bytesWritten - waitingBytes;
    const before = this.#taken.get(socket);
    if (before?.bytes !== bytes) {
      this.#taken.set(socket, { bytes, atMs: nowMs });
      return false;
    }
    const waits = 1 + Math.floor(waitingBytes / stallBytes);
    return nowMs - before.atMs > this.#dependencies.clientStallMs * waits;
  }

  /**
   * Aborts the answers of a connection. A request whose answer has no status yet gets a fault; otherwise the connection
   * is destroyed.
   */
  #cut({ socket, answers, bytes }: UnreadSocket, reason: CutReason, message: string): void {
    const { log, meter } = this.#dependencies;
    const isBegun = answers.some(({ headersSent }) => headersSent);
    const fault = new Fault(isBegun ? "slow_client" : "server_is_overloaded", { message });
    meter?.answerCut(reason);
    const requests = answers.map((answer) => (answer instanceof TimedResponse ? answer.requestId : undefined));
    log.warn({ code: fault.code, requests, bytes }, `an answer was cut: ${message}`);
    for (const answer of answers) if (answer instanceof TimedResponse) answer.leaving?.abort(fault);
    // Destroys the socket later, so that the code that still works on the request sees the fault first.
    if (isBegun) setImmediate(() => socket.destroy());
  }
}

function sumOf(answers: readonly ServerResponse[]): number {
  let bytes = 0;
  for (const answer of answers) {
    bytes += answer.writableLength + (answer instanceof TimedResponse ? answer.keptBytes : 0);
  }
  return bytes;
}
