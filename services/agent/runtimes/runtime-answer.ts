import type { Dispatcher } from "undici";
import { Fault } from "#shared/fault/fault.ts";
import { systemClock, type Timer } from "#shared/process/clock.ts";
import type { Refusal } from "./runtime-connection.ts";

/** The most bytes of an answer that may wait for the reader. At this limit, reading from the runtime pauses. */
export const waitingBytesMax = 64 * 1024;

/** The most bytes of a refusal's text that are read. */
const errorTextBytesMax = 64 * 1024;

/** The time for a runtime to end the body of a complete answer. Its connection is kept if it does. */
const endWaitMs = 250;

/**
 * Time after a request on a kept connection. A connection that breaks within this time, and before an answer, was
 * closed as the request was sent.
 */
const staleWithinMs = 1_000;

/** Schedules work in the next microtask. `queueMicrotask` would create a resource for tracing on each call. */
const turn = Promise.resolve();

interface AnswerOptions {
  readonly signal: AbortSignal;
  readonly faultOf: (refusal: Refusal) => Fault;
  /**
   * Sends the request, on a kept connection if there is one, or on a new connection if `fresh`. Returns a promise where
   * the request must be written first.
   */
  readonly ask: (handler: Dispatcher.DispatchHandler, how: { readonly fresh: boolean }) => Promise<void> | undefined;
  /** Number of connections opened so far. A request went out on a kept connection if none was opened meanwhile. */
  readonly connects?: () => number;
}

/**
 * The body of one answer of a runtime as it comes, for one reader. The first read sends the request. Each read returns
 * all data since the last read as one piece. A piece that came alone is not copied.
 *
 * An abort rejects the waiting read and closes the request at once. A reader that leaves early closes the request too.
 * An answer that breaks off first gives the data that came.
 */
export class RuntimeAnswer implements AsyncIterableIterator<Uint8Array>, Dispatcher.DispatchHandler {
  readonly #options: AnswerOptions;
  #controller: Dispatcher.DispatchController | undefined;
  #asked = false;
  #connectsBefore = 0;
  /** When the request was written to a kept connection; undefined on a new one. */
  #sentOnKeptAtMs: number | undefined;
  #askedAgain = false;
  #status = 0;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  /** True if no more data will come, for whatever reason. */
  #over = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  #abandoned = false;
  #completed = false;
  #endWait: Timer | undefined;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#asked) this.#ask();
    while (this.#waitingBytes === 0 && !this.#over) await this.#arrival();
    if (this.#options.signal.aborted) throw this.#options.signal.reason;
    if (this.#status !== 200 && this.#status !== 0) throw await this.#refusal();
    if (this.#waitingBytes > 0) return { done: false, value: this.#take() };
    if (this.#failure !== undefined) throw this.#silence(this.#failure.error);
    return { done: true, value: undefined };
  }

  /**
   * Hands over the pieces as they come, instead of reads. Waits for the promise that the taker returns before the next
   * piece. An error of the taker ends the request. Resolves at the end of the body, or once the taker has called
   * `complete`.
   */
  handTo(take: (piece: Uint8Array) => Promise<void> | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let isDue = false;
      const soon = (): void => {
        if (isDue) return;
        isDue = true;
        void turn.then(deliver);
      };
      const fail = (error: unknown): void => {
        if (!this.#abandoned) this.#close("the rest of the answer is not wanted");
        reject(error);
      };
      const deliver = (): void => {
        try {
          const room = this.#handOver(take);
          if (room !== undefined) {
            room.then(deliver, fail);
            return;
          }
          isDue = false;
          // Taking data resumes the socket, and waiting data then arrives at once.
          if (this.#waitingBytes > 0 && !this.#isEnough()) soon();
          else if (this.#over || this.#isEnough()) resolve();
        } catch (error) {
          fail(error);
        }
      };
      this.#wake = soon;
      try {
        this.#ask();
      } catch (error) {
        fail(error);
      }
    });
  }

  /** True once the taker has called `complete`, which it may do while it takes a piece. */
  #isEnough(): boolean {
    return this.#completed;
  }

  /** Hands over the waiting data. Returns a promise to wait for before the next piece, if there is one. */
  #handOver(take: (piece: Uint8Array) => Promise<void> | undefined): Promise<void> | undefined {
    if (this.#isEnough()) return undefined;
    if (this.#options.signal.aborted) throw this.#options.signal.reason;
    if (this.#status !== 200 && this.#status !== 0) {
      return this.#refusal().then((fault) => {
        throw fault;
      });
    }
    if (this.#waitingBytes > 0) {
      const room = take(this.#take());
      if (room !== undefined || this.#isEnough()) return room;
    }
    if (this.#failure !== undefined) throw this.#silence(this.#failure.error);
    return undefined;
  }

  /** Called when the reader leaves early. Closes the request, so that the runtime stops. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#abandoned) this.#close("the rest of the answer is not wanted");
    return { done: true, value: undefined };
  }

  /**
   * Called when the answer is complete and the reader leaves. Keeps the connection if the runtime also ends the body.
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

  onResponseStart(controller: Dispatcher.DispatchController, statusCode: number): void {
    // The headers are not read. They are slices of the socket's data, and would keep it alive while the answer lasts.
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
      this.#askedAgain = true;
      this.#controller = undefined;
      this.#send({ fresh: true });
      return;
    }
    this.#failure = { error };
    this.#end();
  }

  /** True if the runtime closed a kept connection just as the request was sent, and so read nothing of it. */
  #wasStale(error: unknown): boolean {
    if (this.#askedAgain || this.#abandoned || this.#status !== 0 || this.#sentOnKeptAtMs === undefined) return false;
    return brokenOff.has(codeOf(error)) && systemClock.now() - this.#sentOnKeptAtMs < staleWithinMs;
  }

  #ask(): void {
    const { signal } = this.#options;
    signal.throwIfAborted();
    this.#asked = true;
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

  #silence(error: unknown): Fault {
    return silenceFault(error, { answered: this.#status !== 0, askedAgain: this.#askedAgain });
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

/** Error codes of undici and the kernel for an established connection that broke. */
const brokenOff = new Set<unknown>(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function silenceFault(
  error: unknown,
  { answered, askedAgain }: { readonly answered: boolean; readonly askedAgain: boolean },
): Fault {
  return new Fault(answered ? "upstream_error" : "runtime_offline", {
    message: answered ? "The runtime broke off its answer." : "The runtime does not answer.",
    internal: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    runtimeDied: answered || askedAgain || brokenOff.has(codeOf(error)),
    cause: error,
  });
}
