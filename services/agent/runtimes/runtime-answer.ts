import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { systemClock, type Timer } from "#shared/process/clock.ts";
import { SentEvents, type SentEvent } from "#shared/process/cut-stream.ts";
import type { EmitEvents } from "./runtime.ts";

/** The most bytes of an answer that may wait for the reader. At this limit, reading from the runtime pauses. */
export const waitingBytesMax = 64 * 1024;

/** The longest line that a runtime may send. A whole tool call comes in one line, and its arguments may hold a file. */
export const runtimeLineBytesMax = 8 * 1024 * 1024;

/** The most bytes of a refusal's text that are read. */
const errorTextBytesMax = 64 * 1024;

/** The time for a runtime to end the body of a complete answer. Its connection is kept if it does. */
const endWaitMs = 250;

/**
 * Time after a request on a kept connection. A connection that breaks within this time, and before an answer, was
 * closed as the request was sent.
 */
const staleWithinMs = 1_000;

/** An answer of a runtime with a status other than success. */
export interface RuntimeRefusal {
  readonly status: number;
  /** The beginning of the answer's text, as far as it is read. */
  readonly text: string;
}

interface AnswerOptions {
  readonly signal: AbortSignal;
  readonly faultOf: (refusal: RuntimeRefusal) => Fault;
  /**
   * Sends the request, on a kept connection if there is one, or on a new connection if `fresh`. Returns a promise where
   * the request must be written first.
   */
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
  /** The beginning of a character whose rest comes with the next piece. Undefined once bytes were no UTF-8. */
  #cutCharacter: Uint8Array | undefined = nothing;
  #endWait: Timer | undefined;

  /** The media type that the runtime names, without its parameters; empty until the head has come, or without one. */
  mediaType = "";

  constructor(options: AnswerOptions) {
    this.#options = options;
    if (options.isBinary === true) this.#cutCharacter = undefined;
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
    try {
      this.#ask();
      for (;;) {
        while (this.#waitingBytes === 0 && !this.#over) await this.#arrival();
        if (this.#options.signal.aborted) throw this.#options.signal.reason;
        if (this.#status !== 200 && this.#status !== 0) throw await this.#refusal();
        if (this.#waitingBytes === 0) break;
        const piece = this.#take();
        this.#watchUtf8(piece);
        const room = take(piece);
        if (room !== undefined) await room;
        if (this.#completed) return;
      }
      if (this.#failure !== undefined) throw this.#silence(this.#failure.error);
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
    this.#settle();
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

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    { "content-type": type }: IncomingHttpHeaders,
  ): void {
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
    return brokenOff.has(codeOf(error)) && systemClock.now() - this.#sentOnKeptAtMs < staleWithinMs;
  }

  #ask(): void {
    const { signal } = this.#options;
    signal.throwIfAborted();
    signal.addEventListener("abort", this.#onAbort);
    this.#connectsBefore = this.#options.connects?.() ?? 0;
    this.#send({ fresh: false });
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
    this.#settle();
    this.#wake?.();
  }

  #settle(): void {
    this.#options.signal.removeEventListener("abort", this.#onAbort);
  }

  /** Resolves in the microtask after a read of the socket, so that all data of that read is one piece. */
  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
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

  #watchUtf8(piece: Uint8Array): void {
    const before = this.#cutCharacter;
    if (before === undefined || (before.byteLength === 0 && isUtf8(piece))) return;
    const bytes = Buffer.concat([before, piece]);
    const ends = [0, 1, 2, 3].map((cut) => bytes.length - cut);
    const whole = ends.find((end) => isUtf8(bytes.subarray(0, end)) && isBegun(bytes.subarray(end)));
    this.#cutCharacter = whole === undefined ? undefined : bytes.subarray(whole);
    if (whole === undefined) this.#options.onNotUtf8?.();
  }

  /** Returns the fault for a connection that broke, or that never came to be. */
  #silence(error: unknown): Fault {
    const answered = this.#status !== 0;
    return new Fault(answered ? "upstream_error" : "runtime_offline", {
      message: answered ? "The runtime broke off its answer." : "The runtime does not answer.",
      internal: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      died: answered || this.#retried || brokenOff.has(codeOf(error)) ? "runtime" : undefined,
      cause: error,
    });
  }

  async #refusal(): Promise<unknown> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    while (bytes <= errorTextBytesMax) {
      if (this.#waitingBytes > 0) {
        const piece = this.#take();
        pieces.push(piece);
        bytes += piece.byteLength;
      } else if (this.#over) break;
      else await this.#arrival();
    }
    const { signal, faultOf } = this.#options;
    if (signal.aborted) return signal.reason;
    if (this.#failure !== undefined) return this.#silence(this.#failure.error);
    this.#close("enough of the refusal is read");
    return faultOf({ status: this.#status, text: Buffer.concat(pieces).toString() });
  }
}

const nothing = new Uint8Array();
/** True for no bytes, and for the beginning of a character of several bytes. */
function isBegun([lead, ...rest]: Uint8Array): boolean {
  return lead === undefined || (lead >= 0xc2 && lead <= 0xf4 && rest.every((byte) => (byte & 0xc0) === 0x80));
}

/** Error codes of undici and the kernel for an established connection that broke. */
const brokenOff = new Set<unknown>(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** Splits a body into its items as its pieces come. Items before a fault in a piece are still passed on. */
export interface Splitter<Item> {
  push(piece: Uint8Array, onItem: (item: Item) => void): void;
  end(onItem: (item: Item) => void): void;
}

interface StreamReading<Item> {
  readonly splitter: Splitter<Item>;
  /** Adds the answer events of an item. */
  readonly read: (item: Item, events: AnswerEvent[]) => void;
  /** Called after each piece, before its events are emitted. */
  readonly onPiece: () => void;
}

/** Reads an answer to its end. Emits one batch of events for each piece, also the events before a fault in it. */
export async function readStream<Item>(
  body: RuntimeAnswer,
  { splitter, read, onPiece }: StreamReading<Item>,
  emit: EmitEvents,
): Promise<void> {
  const emitItems = (split: (onItem: (item: Item) => void) => void): Promise<void> | undefined => {
    const events: AnswerEvent[] = [];
    let room: Promise<void> | undefined;
    try {
      split((item) => read(item, events));
    } finally {
      onPiece();
      if (events.length > 0) room = emit(events);
    }
    return room;
  };
  await body.read((piece) => emitItems((onItem) => splitter.push(piece, onItem)));
  await emitItems((onItem) => splitter.end(onItem));
}

/** Returns the splitter for a body of server-sent events. */
export function sentEvents(bytesMax = runtimeLineBytesMax): Splitter<SentEvent> {
  return new SentEvents({ bytesMax, tooLong: () => tooLong("an event", bytesMax), noEvents });
}

function noEvents(line: string): Fault {
  const looksLike = line.trimStart().startsWith("<") ? "HTML" : line.trimStart().startsWith("{") ? "JSON" : "text";
  return new Fault("upstream_error", {
    message: "The runtime did not answer with server-sent events.",
    internal: `${looksLike} where server-sent events were asked for`,
  });
}

export function tooLong(what: "a line" | "an event", bytesMax: number): Fault {
  return new Fault("upstream_error", {
    message: `The runtime sent ${what} longer than ${bytesMax} bytes (runtimeLineBytesMax).`,
  });
}
