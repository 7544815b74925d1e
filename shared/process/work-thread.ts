import { setTimeout } from "node:timers/promises";
import { parentPort, type Worker } from "node:worker_threads";
import { type FaultCode, Fault } from "../fault/fault.ts";
import { supplyOlderNodes } from "./older-nodes.ts";
import { startOwnThread } from "./own-files.ts";

/** The answer to one order. A thread answers its orders one after the other. */
type OrderAnswer<Result> =
  | { readonly outcome: "done"; readonly result: Result }
  | {
      readonly outcome: "fault";
      readonly code: FaultCode;
      readonly details: { message: string; param: string | undefined; internal: string | undefined };
    };

/** Heap of a thread in megabytes. A thread that needs more ends, and not the process with all its streams. */
const heapMb = 1_024;

/** The owner of an order. Senders take turns, and the order of a client that left is dropped unless it is being done. */
export interface OrderOwner {
  readonly sender?: string;
  readonly signal?: AbortSignal | undefined;
  /** The bytes of the order, if it has more than those that move to the thread. */
  readonly size?: number;
}

/** Bounds the CPU time that the thread may take for an order, by the bytes of the order. */
export interface CpuBound {
  readonly msPerMb: number;
  /** Returns the fault of an order that takes more. Its thread ends. */
  readonly fault: () => Fault;
}

/** The shortest wait between two looks at the CPU time of a thread that is still at work. */
const cpuLookMs = 50;
const megabyte = 1_000_000;

interface WaitingOrder<Order, Result> {
  readonly order: Order;
  readonly bytes: Uint8Array;
  readonly size: number;
  readonly settle: (answer: OrderAnswer<Result>) => void;
}

/**
 * A thread that does long work, such as reading a request of 30 MB, which takes half a second in which no stream would
 * go on. It starts with the first order. After it ends, the next order starts another. Orders wait in this thread, and
 * one is posted at a time.
 */
export class WorkThread<Order, Result> {
  readonly #module: URL;
  readonly #cpuBound: CpuBound | undefined;
  /** By sender. The first sender is the next to have an order done. */
  readonly #waiting = new Map<string, WaitingOrder<Order, Result>[]>();
  #current: WaitingOrder<Order, Result> | undefined;
  #thread: Worker | undefined;
  #bytes = 0;

  /** `module` calls `serveOrders`. */
  constructor(module: URL, cpuBound?: CpuBound) {
    this.#module = module;
    this.#cpuBound = cpuBound;
  }

  /** Bytes of all orders that are not done. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Has an order done. `bytes` belong to it; their memory moves to the thread when nothing else shares it. A fault of
   * the thread is thrown here.
   */
  async run(order: Order, bytes: Uint8Array, owner: OrderOwner = {}): Promise<Result> {
    const { sender = "", signal, size = bytes.byteLength } = owner;
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<OrderAnswer<Result>>();
    const waiting = { order, bytes, size, settle: resolve };
    const leave = (): void => {
      if (this.#drop(sender, waiting)) reject(signal?.reason);
    };
    this.#waiting.set(sender, [...(this.#waiting.get(sender) ?? []), waiting]);
    this.#bytes += size;
    signal?.addEventListener("abort", leave, { once: true });
    this.#next();
    try {
      const answer = await promise;
      if (answer.outcome === "fault") throw new Fault(answer.code, answer.details);
      return answer.result;
    } finally {
      signal?.removeEventListener("abort", leave);
      this.#bytes -= size;
    }
  }

  /** Stops the thread; orders that still wait end in a fault. */
  async stop(): Promise<void> {
    const ended = Fault.from(new Error("a work thread was stopped"));
    for (const orders of this.#waiting.values()) for (const { settle } of orders) settle(answerOf(ended));
    this.#waiting.clear();
    await this.#thread?.terminate();
  }

  /** Posts the next order, if none is being done. */
  #next(): void {
    const [first] = this.#waiting;
    if (this.#current !== undefined || first === undefined) return;
    const [sender, [next, ...rest]] = first;
    this.#waiting.delete(sender);
    if (rest.length > 0) this.#waiting.set(sender, rest);
    if (next === undefined) return;
    const thread = (this.#thread ??= this.#start());
    this.#current = next;
    if (this.#cpuBound !== undefined) void this.#boundCpu(thread, next, this.#cpuBound);
    thread.postMessage(next.order, movable(next.bytes));
  }

  #drop(sender: string, order: WaitingOrder<Order, Result>): boolean {
    const orders = this.#waiting.get(sender) ?? [];
    const others = orders.filter((each) => each !== order);
    if (others.length > 0) this.#waiting.set(sender, others);
    else this.#waiting.delete(sender);
    return others.length < orders.length;
  }

  /** Ends the thread if the order takes more CPU time than its bytes permit. Time in which the thread waits does not count. */
  async #boundCpu(thread: Worker, order: WaitingOrder<Order, Result>, { msPerMb, fault }: CpuBound): Promise<void> {
    const budgetMs = msPerMb * Math.max(1, order.size / megabyte);
    const before = cpuMsOf(thread);
    let leftMs = budgetMs;
    while (leftMs > 0) {
      await setTimeout(Math.max(leftMs, cpuLookMs), undefined, { ref: false });
      if (this.#current !== order) return;
      leftMs = budgetMs - ((await cpuMsOf(thread)) - (await before));
    }
    if (this.#current !== order) return;
    this.#settle(answerOf(fault()));
    this.#thread = undefined;
    await thread.terminate();
    this.#next();
  }

  #start(): Worker {
    const thread = startOwnThread(this.#module, { resourceLimits: { maxOldGenerationSizeMb: heapMb } });
    const ended = (error: unknown): void => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#settle(answerOf(Fault.from(error)));
      this.#next();
    };
    thread.on("message", (answer: OrderAnswer<Result>) => {
      // The last words of a thread that was ended are for no order.
      if (this.#thread !== thread) return;
      this.#settle(answer);
      this.#next();
    });
    // A thread fails because of a bug, or runs out of memory.
    thread.on("error", ended);
    thread.on("exit", () => ended(new Error("a work thread has ended")));
    // Listeners would keep the process alive.
    thread.unref();
    return thread;
  }

  #settle(answer: OrderAnswer<Result>): void {
    this.#current?.settle(answer);
    this.#current = undefined;
  }
}

/** Returns the CPU time of a thread. Node before 24.6 reports its busy time instead, in which the host may have run others. */
async function cpuMsOf(thread: Worker): Promise<number> {
  if (!("cpuUsage" in thread)) return (thread as Worker).performance.eventLoopUtilization().active;
  const { user, system } = await thread.cpuUsage().catch(() => ({ user: 0, system: 0 }));
  return (user + system) / 1_000;
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

function answerTo<Result>(work: () => Result): OrderAnswer<Result> {
  try {
    return { outcome: "done", result: work() };
  } catch (thrown) {
    return answerOf(Fault.from(thrown));
  }
}

function answerOf({ code, message, param, internal }: Fault): OrderAnswer<never> {
  return { outcome: "fault", code, details: { message, param, internal } };
}

/** Returns the memory of bytes that fill it alone. */
function movable({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
