import type { Dispatcher } from "undici";
import { Fault } from "#shared/fault/fault.ts";
import { systemClock, type Timer } from "#shared/process/clock.ts";
import type { Refusal } from "./runtime-connection.ts";

/** How much of an answer may wait here while nobody reads it. Beyond that the runtime is not read on. */
export const waitingBytesMax = 64 * 1024;

/** How much of what a runtime says of a refusal is read. */
const errorTextBytesMax = 64 * 1024;

/** For how long a runtime may still end the body of an answer that is complete, so that its connection can be kept. */
const endWaitMs = 250;

/** What waits for this goes on in the next microtask: `queueMicrotask` makes a resource for each, to be traced by. */
const turn = Promise.resolve();

interface AnswerOptions {
  readonly signal: AbortSignal;
  readonly faultOf: (refusal: Refusal) => Fault;
  readonly ask: (handler: Dispatcher.DispatchHandler) => void;
}

/**
 * The body of one answer of a runtime as it comes, for one reader. The question is asked with the first read. What came
 * since the last read is given as one piece; nobody copies what came alone.
 *
 * An abort rejects the read that waits and closes the request at once, and so does a reader that leaves early. An answer
 * that breaks off gives first what came of it.
 */
export class RuntimeAnswer implements AsyncIterableIterator<Uint8Array>, Dispatcher.DispatchHandler {
  readonly #options: AnswerOptions;
  #controller: Dispatcher.DispatchController | undefined;
  #asked = false;
  #status = 0;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Nothing more will come, for one reason or another. */
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
    if (this.#failure !== undefined) throw silenceFault(this.#failure.error, { answered: this.#status !== 0 });
    return { done: true, value: undefined };
  }

  /**
   * Hands over the pieces as they come, in place of reads. What the taker returns is waited for before the next; what it
   * throws ends the request. Resolves when there is no more, or the taker has what it wanted.
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
          // To make room lets the socket be read, and what was there comes at once.
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

  /** A taker may say so while it takes a piece. */
  #isEnough(): boolean {
    return this.#completed;
  }

  /** What has to be waited for until it can go on, if anything. */
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
    if (this.#failure !== undefined) throw silenceFault(this.#failure.error, { answered: this.#status !== 0 });
    return undefined;
  }

  /** The reader leaves: nobody wants the rest, and the runtime is to stop. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#abandoned) this.#close("the rest of the answer is not wanted");
    return { done: true, value: undefined };
  }

  /**
   * All that counts has come, and the reader leaves: the connection is kept if the runtime ends the body as well. Some
   * say that they have done and never do.
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
    if (this.#abandoned) controller.abort(new Error("nobody waits for the answer any more"));
  }

  onResponseStart(controller: Dispatcher.DispatchController, statusCode: number): void {
    // Nobody reads them, and they are cut from what the socket gave, which they would keep while the answer lasts.
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
    this.#failure = { error };
    this.#end();
  }

  #ask(): void {
    const { signal, ask } = this.#options;
    signal.throwIfAborted();
    this.#asked = true;
    signal.addEventListener("abort", this.#onAbort);
    ask(this);
  }

  readonly #onAbort = (): void => this.#close("nobody waits for the answer any more");

  /** Also before the request is on its way: undici knows of no request until it has a connection for it. */
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

  /** Resolved in the microtask after a read of the socket, so that all that came with it is one piece. */
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
    // What came meanwhile comes at once, while this call lasts.
    if (isPaused) this.#controller?.resume();
    return piece;
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
    if (this.#failure !== undefined) return silenceFault(this.#failure.error, { answered: true });
    this.#close("enough of the refusal is read");
    return faultOf({ status: this.#status, text: Buffer.concat(pieces).toString() });
  }
}

/** What undici and the kernel say of a connection that stood and is gone. */
const brokenOff = new Set<unknown>(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function silenceFault(error: unknown, { answered }: { readonly answered: boolean }): Fault {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return new Fault(answered ? "upstream_error" : "runtime_offline", {
    message: answered ? "The runtime broke off its answer." : "The runtime does not answer.",
    internal: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    runtimeDied: answered || brokenOff.has(code),
    cause: error,
  });
}
