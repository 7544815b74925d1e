import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import type { Dispatcher } from "undici";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { systemClock, type Timer } from "#shared/process/clock.ts";
import { hasBrokenOff, noEvents, type RuntimeRefusal, silenceFault, tooLong } from "./runtime-faults.ts";
import type { EmitEvents } from "./runtime.ts";

/** The most bytes of an answer that may wait for the reader. At this limit, reading from the runtime pauses. */
export const waitingBytesMax = 64 * 1024;

/** The longest line that a runtime may send. A whole tool call comes in one line, and its arguments may hold a file. */
export const runtimeLineBytesMax = 8 * 1024 * 1024;

/** The most bytes of a refusal's text that are read. */
const errorTextBytesMax = 64 * 1024;

/** The time for a runtime to end the body of a complete answer. Its connection is kept if it does. */
const endWaitMs = 250;

/** A kept connection that breaks within this time of a request, before an answer, was closed as it was sent. */
const staleWithinMs = 1_000;

interface AnswerOptions {
  readonly signal: AbortSignal;
  readonly faultOf: (refusal: RuntimeRefusal) => Fault;
  /** Sends the request, on a new connection if `fresh`. Returns a promise where the request must be written first. */
  readonly ask: (handler: Dispatcher.DispatchHandler, how: { readonly fresh: boolean }) => Promise<void> | undefined;
  /** Called once for an answer that has bytes which are no UTF-8. Its reader puts U+FFFD in their place. */
  readonly onNotUtf8?: () => void;
  /** True if the answer is no text, so that any bytes may come. */
  readonly isBinary?: boolean | undefined;
  /** Number of connections opened so far. A request went out on a kept connection if none was opened meanwhile. */
  readonly connects?: () => number;
}

/** The body of one answer of a runtime as it comes, for one reader. */
export class RuntimeAnswer implements Dispatcher.DispatchHandler {
  readonly #options: AnswerOptions;
  #controller: Dispatcher.DispatchController | undefined;
  #connectsBefore = 0;
  /** The time at which the request was written to a kept connection; undefined on a new one. */
  #sentOnKeptAtMs: number | undefined;
  #retried = false;
  #status = 0;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  /** True if no more data will come, for whatever reason. */
  #over = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  #abandoned = false;
  #completed = false;
  /** False once bytes were no UTF-8, and for an answer that is no text. */
  #isWatched: boolean;
  /** Set once a piece was no UTF-8 by itself. */
  #decoder: TextDecoder | undefined;
  #endWait: Timer | undefined;

  /** The media type that the runtime names, without its parameters; empty until the head has come, or without one. */
  mediaType = "";

  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#isWatched = options.isBinary !== true;
  }

  /**
   * Sends the request and passes the body on as it comes. All data since the last call comes as one piece; a piece that
   * came alone is not copied. Waits for the promise that `take` returns before the next piece. Resolves at the end of
   * the body, or once the taker has called `complete`.
   *
   * An abort rejects and closes the request at once, and so does an error of the taker. An answer that breaks off first
   * gives the data that came.
   */
  async read(take: (piece: Uint8Array) => Promise<void> | undefined): Promise<void> {
    const { signal, faultOf, connects } = this.#options;
    const refusal: Uint8Array[] = [];
    let refusalBytes = 0;
    try {
      signal.throwIfAborted();
      signal.addEventListener("abort", this.#onAbort);
      this.#connectsBefore = connects?.() ?? 0;
      this.#send({ fresh: false });
      while (refusalBytes <= errorTextBytesMax) {
        while (this.#waitingBytes === 0 && !this.#over) {
          // Goes on in the microtask after a read of the socket, so that all data of that read is one piece.
          const { promise, resolve } = Promise.withResolvers<void>();
          this.#wake = resolve;
          await promise;
        }
        signal.throwIfAborted();
        if (this.#waitingBytes === 0) break;
        const piece = this.#take();
        if (this.#status !== 200) {
          refusal.push(piece);
          refusalBytes += piece.byteLength;
          continue;
        }
        if (this.#isWatched && (this.#decoder !== undefined || !isUtf8(piece))) this.#watchUtf8(piece);
        const room = take(piece);
        if (room !== undefined) await room;
        if (this.#completed) return;
      }
      if (this.#failure !== undefined) {
        throw silenceFault(this.#failure.error, { hasAnswered: this.#status !== 0, isRetried: this.#retried });
      }
      if (this.#status !== 200 && this.#status !== 0) {
        throw faultOf({ status: this.#status, text: Buffer.concat(refusal).toString() });
      }
    } catch (error) {
      if (!this.#abandoned) this.#close("the rest of the answer is not wanted");
      throw error;
    }
  }

  /**
   * Called by the taker when the answer is complete. Keeps the connection if the runtime also ends the body.
   * Some runtimes report the end of an answer and never end the body.
   */
  complete(): void {
    this.#completed = true;
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    if (this.#over || this.#abandoned) return;
    this.#abandon();
    this.#endWait = systemClock.after(endWaitMs, () => this.#close("the runtime does not end its answer"));
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    const isKept = this.#options.connects?.() === this.#connectsBefore;
    this.#sentOnKeptAtMs = isKept ? systemClock.now() : undefined;
    if (this.#abandoned) controller.abort(new Error("nobody waits for the answer any more"));
  }

  onResponseStart(controller: Dispatcher.DispatchController, statusCode: number, headers: IncomingHttpHeaders): void {
    const { "content-type": type } = headers;
    if (typeof type === "string") this.mediaType = (type.split(";", 1)[0] ?? "").trim().toLowerCase();
    // The other headers are not read. They are slices of the socket's data, and would keep it alive while the answer lasts.
    controller.rawHeaders = null;
    if (statusCode >= 200) this.#status = statusCode;
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Uint8Array): void {
    if (this.#abandoned) return;
    this.#pieces.push(piece);
    this.#waitingBytes += piece.byteLength;
    if (this.#waitingBytes >= waitingBytesMax) controller.pause();
    this.#wake?.();
  }

  onResponseEnd(): void {
    this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: unknown): void {
    if (this.#wasStale(error)) {
      this.#retried = true;
      this.#controller = undefined;
      this.#send({ fresh: true });
      return;
    }
    this.#failure = { error };
    this.#end();
  }

  /** True if the runtime closed a kept connection just as the request was sent, and so read nothing of it. */
  #wasStale(error: unknown): boolean {
    if (this.#retried || this.#abandoned || this.#status !== 0 || this.#sentOnKeptAtMs === undefined) return false;
    return hasBrokenOff(error) && systemClock.now() - this.#sentOnKeptAtMs < staleWithinMs;
  }

  #send(how: { readonly fresh: boolean }): void {
    this.#options.ask(this, how)?.catch((error: unknown) => {
      this.#failure = { error };
      this.#end();
    });
  }

  readonly #onAbort = (): void => this.#close("nobody waits for the answer any more");

  /** Closes the request, also before it is sent: undici knows no request until it has a connection for it. */
  #close(why: string): void {
    if (this.#over) return;
    this.#abandon();
    this.#end();
    this.#controller?.abort(new Error(why));
  }

  #abandon(): void {
    this.#abandoned = true;
    this.#pieces = [];
    this.#waitingBytes = 0;
  }

  #end(): void {
    this.#over = true;
    this.#endWait?.cancel();
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#wake?.();
  }

  #take(): Uint8Array {
    const only = this.#pieces.length === 1 ? this.#pieces.pop() : undefined;
    const piece = only ?? Buffer.concat(this.#pieces);
    if (only === undefined) this.#pieces = [];
    const isPaused = this.#waitingBytes >= waitingBytesMax;
    this.#waitingBytes = 0;
    // Data that came meanwhile arrives during this call.
    if (isPaused) this.#controller?.resume();
    return piece;
  }

  /** Looks whether a piece is no UTF-8 at all, or only ends within a character: its rest comes with the next piece. */
  #watchUtf8(piece: Uint8Array): void {
    this.#decoder ??= new TextDecoder("utf-8", { fatal: true });
    try {
      this.#decoder.decode(piece, { stream: true });
    } catch {
      this.#isWatched = false;
      this.#options.onNotUtf8?.();
    }
  }
}

/** Splits a body into its items as its pieces come. Items before a fault in a piece are still passed on. */
export interface Splitter {
  push(piece: Uint8Array): void;
  end(): void;
}

interface StreamReading {
  /** The splitter of the body, which adds the answer events of each item to `events`. */
  readonly splitter: Splitter;
  readonly events: AnswerEvent[];
  /** Called after each piece, before its events are emitted. */
  readonly onPiece: () => void;
}

/** Reads an answer to its end. Emits one batch of events for each piece, also the events before a fault in it. */
export async function readStream(
  body: RuntimeAnswer,
  { splitter, events, onPiece }: StreamReading,
  emit: EmitEvents,
): Promise<void> {
  const take = (piece?: Uint8Array): Promise<void> | undefined => {
    let room: Promise<void> | undefined;
    try {
      if (piece === undefined) splitter.end();
      else splitter.push(piece);
    } finally {
      onPiece();
      if (events.length > 0) room = emit(events.splice(0));
    }
    return room;
  };
  await body.read(take);
  await take();
}

/** An event of a stream, or a comment: a line by which the sender only shows that it is alive. */
export type SentEvent =
  | { readonly kind: "event"; readonly name: string; readonly data: string }
  | { readonly kind: "comment"; readonly text: string };

/** Opens the splitter for a body of server-sent events. The last event may lack the empty line behind it. */
export function sentEvents(onEvent: (event: SentEvent) => void, bytesMax = runtimeLineBytesMax): Splitter {
  const decoder = new StringDecoder();
  const parser = createParser({
    maxBufferSize: bytesMax,
    onEvent({ event: name = "", data }) {
      // The parser bounds only what it holds between two pieces.
      if (data.length > bytesMax) throw tooLong("an event", bytesMax);
      onEvent({ kind: "event", name, data });
    },
    onComment: (text) => onEvent({ kind: "comment", text: text.trim() }),
    onError({ type, line = "" }) {
      if (type === "max-buffer-size-exceeded") throw tooLong("an event", bytesMax);
      if (type === "unknown-field") throw noEvents(line);
    },
  });
  /** True until the first text, which may begin with a byte order mark. */
  let isFirst = true;
  return {
    push(piece) {
      const text = decoder.write(piece);
      parser.feed(isFirst && text.startsWith("\uFEFF") ? text.slice(1) : text);
      if (text !== "") isFirst = false;
    },
    end: () => parser.feed(`${decoder.end()}\n\n`),
  };
}
