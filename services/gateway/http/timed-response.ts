import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";

export const processingHeader = "openai-processing-ms";

/** Makes browsers trust the content type of an answer, whatever the body looks like. */
export const noSniffing = ["x-content-type-options", "nosniff"] as const;

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * A response that adds two headers by itself. One has the milliseconds from the arrival of the request's head; the
 * other forbids browsers to guess the content type. The class does this so that every way of writing is covered: whole
 * answers, streams and refusals.
 */
export class TimedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  readonly #arrivedAtMs = performance.now();
  #atClose: (() => void)[] | undefined;
  requestId: string | undefined;
  /** Aborts the work on this response's request. */
  leaving: AbortController | undefined;
  /** Bytes of this answer that this process holds and has not yet handed to Node. */
  keptBytes = 0;

  get sinceArrivalMs(): number {
    return performance.now() - this.#arrivedAtMs;
  }

  /** Runs `run` at `close`, at a fraction of a listener's cost: each request has half a dozen. */
  atClose(run: () => void): void {
    if (this.#atClose === undefined) {
      this.#atClose = [run];
      this.on("close", closed);
    } else this.#atClose.push(run);
  }

  /** Called by the listener `closed` only. */
  runAtClose(): void {
    const all = this.#atClose ?? [];
    this.#atClose = [];
    for (let at = 0; at < all.length; at += 1) all[at]?.();
  }

  override writeHead(status: number, reasonOrHeaders?: string | Headers, headers?: Headers): this {
    const elapsedMs = String(Math.floor(this.sinceArrivalMs));
    // Node writes a flat array of headers as it is when no header was set before. It reads none of them twice.
    if (Array.isArray(reasonOrHeaders)) reasonOrHeaders.push(processingHeader, elapsedMs, ...noSniffing);
    else if (!this.headersSent) this.setHeader(processingHeader, elapsedMs).setHeader(...noSniffing);
    return typeof reasonOrHeaders === "string"
      ? super.writeHead(status, reasonOrHeaders, headers)
      : super.writeHead(status, reasonOrHeaders);
  }
}

/** The `close` listener, one function for all answers. */
function closed(this: TimedResponse): void {
  this.runAtClose();
}

/** Returns the milliseconds since the arrival of the head of the request that this response answers. */
export function sinceArrivalMs(response: ServerResponse): number {
  return response instanceof TimedResponse ? response.sinceArrivalMs : 0;
}

/** Runs `run` when an answer is sent or its connection has closed, in the order of registration. */
export function atClose(response: ServerResponse, run: () => void): void {
  if (response instanceof TimedResponse) response.atClose(run);
  else response.once("close", run);
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
