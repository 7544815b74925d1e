import { parentPort, type Worker } from "node:worker_threads";
import { type FaultCode, Fault } from "../fault/fault.ts";
import { supplyOlderNodes } from "./older-nodes.ts";
import { startOwnThread } from "./own-files.ts";

/** The answer to one order. A thread answers its orders one after the other. */
type Answer<Result> =
  | { readonly outcome: "done"; readonly result: Result }
  | {
      readonly outcome: "fault";
      readonly code: FaultCode;
      readonly details: { message: string; param: string | undefined; internal: string | undefined };
    };

/** Heap of a thread in megabytes. A thread that needs more ends, and not the process with all its streams. */
const heapMb = 1_024;

/**
 * A thread that does long work, such as reading a request of 30 MB, which takes half a second in which no stream would
 * go on. It starts with the first order. After it ends, the next order starts another.
 */
export class WorkThread<Order, Result> {
  readonly #module: URL;
  readonly #waiting: { readonly bytes: number; readonly settle: (answer: Answer<Result>) => void }[] = [];
  #thread: Worker | undefined;
  #bytes = 0;

  /** `module` calls `serveOrders`. */
  constructor(module: URL) {
    this.#module = module;
  }

  /** Bytes of all orders that are not done. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Has an order done. `bytes` belong to it; their memory moves to the thread when nothing else shares it. A fault of
   * the thread is thrown here.
   */
  async run(order: Order, bytes: Uint8Array): Promise<Result> {
    const { promise, resolve } = Promise.withResolvers<Answer<Result>>();
    this.#waiting.push({ bytes: bytes.byteLength, settle: resolve });
    this.#bytes += bytes.byteLength;
    this.#thread ??= this.#start();
    this.#thread.postMessage(order, movable(bytes));
    const answer = await promise;
    if (answer.outcome === "fault") throw new Fault(answer.code, answer.details);
    return answer.result;
  }

  /** Stops the thread; orders that still wait end in a fault. */
  async stop(): Promise<void> {
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = startOwnThread(this.#module, { resourceLimits: { maxOldGenerationSizeMb: heapMb } });
    thread.on("message", (answer: Answer<Result>) => this.#settle(answer));
    // A thread fails because of a bug, or runs out of memory.
    thread.on("error", (error: unknown) => this.#ended(error));
    thread.on("exit", () => this.#ended(new Error("a work thread has ended")));
    // Listeners would keep the process alive.
    thread.unref();
    return thread;
  }

  #settle(answer: Answer<Result>): void {
    const first = this.#waiting.shift();
    if (first === undefined) return;
    this.#bytes -= first.bytes;
    first.settle(answer);
  }

  #ended(error: unknown): void {
    this.#thread = undefined;
    const { code, message, internal } = Fault.from(error);
    while (this.#waiting.length > 0) {
      this.#settle({ outcome: "fault", code, details: { message, param: undefined, internal } });
    }
  }
}

/**
 * Runs in a thread of `WorkThread`: does each order and answers with its result. `bytesOf` returns bytes of the result
 * whose memory moves to the other thread.
 */
export function serveOrders<Result>(
  work: (order: never) => Result,
  bytesOf: (result: Result) => Uint8Array | undefined,
): void {
  supplyOlderNodes();
  parentPort?.on("message", (order: unknown) => {
    const answer = answerTo(() => work(order as never));
    const bytes = answer.outcome === "done" ? bytesOf(answer.result) : undefined;
    parentPort?.postMessage(answer, bytes === undefined ? [] : movable(bytes));
  });
}

function answerTo<Result>(work: () => Result): Answer<Result> {
  try {
    return { outcome: "done", result: work() };
  } catch (thrown) {
    const { code, message, param, internal } = Fault.from(thrown);
    return { outcome: "fault", code, details: { message, param, internal } };
  }
}

/** Returns the memory of bytes that fill it alone. */
function movable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
