import { Worker } from "node:worker_threads";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import { bodyWent } from "#shared/process/large-garbage.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Asked } from "./asked.ts";
import { readAsked, type Outer } from "./read-asked.ts";

/** An order to the reading thread. The thread sends one `ReadAnswer` to each order, in the same order. */
export interface ReadOrder {
  readonly outer: Outer;
  readonly bytes: Uint8Array;
}
export type ReadAnswer =
  | { readonly outcome: "read"; readonly asked: Asked }
  | {
      readonly outcome: "fault";
      readonly code: FaultCode;
      readonly details: { message: string; param: string | undefined; internal: string | undefined };
    };

/** Up to this size a request is read in the main thread: that is faster than handing it over. */
const readHereBytesMax = limits.partBytes;
/** Bytes of all requests that the reading thread reads, or that wait for it. */
export const readingBytesMax = 256 * 1024 * 1024;

/** Heap of the reading thread in megabytes. A thread that needs more ends, and not the gateway with all its streams. */
const readingHeapMb = 1_024;

interface Waiting {
  readonly bytes: number;
  readonly settle: (answer: ReadAnswer) => void;
}

/**
 * Reads the requests of a gateway. Large ones are read in a thread of their own. To read, check and write 30 MB takes
 * half a second, in which no stream of another client would go on.
 */
export class ReadAside {
  readonly #waiting: Waiting[] = [];
  #thread: Worker | undefined;
  #bytes = 0;

  /** Reads a request. Only a large one returns a promise; nearly every request is read at once. */
  read(outer: Outer, bytes: Buffer | undefined): Asked | Promise<Asked> {
    if (bytes === undefined) return readAsked(outer, bytes);
    bodyWent(bytes.byteLength);
    return bytes.byteLength > readHereBytesMax ? this.#readAside(outer, bytes) : readAsked(outer, bytes);
  }

  /** Stops the reading thread; requests that still wait end in a fault. */
  async stop(): Promise<void> {
    await this.#thread?.terminate();
  }

  async #readAside(outer: Outer, bytes: Buffer): Promise<Asked> {
    if (this.#bytes + bytes.byteLength > readingBytesMax) throw tooMuch();
    const answer = await this.#order(outer, bytes);
    if (answer.outcome === "fault") throw new Fault(answer.code, answer.details);
    return answer.asked;
  }

  #order(outer: Outer, bytes: Buffer): Promise<ReadAnswer> {
    const { promise, resolve } = Promise.withResolvers<ReadAnswer>();
    const { byteLength } = bytes;
    this.#waiting.push({ bytes: byteLength, settle: resolve });
    this.#bytes += byteLength;
    const { buffer } = bytes;
    const isAllOfIt = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
    this.#thread ??= this.#start();
    this.#thread.postMessage({ outer, bytes } satisfies ReadOrder, isAllOfIt ? [buffer] : []);
    return promise;
  }

  #start(): Worker {
    const url = new URL("./reading-thread.ts", import.meta.url);
    const thread = new Worker(url, { resourceLimits: { maxOldGenerationSizeMb: readingHeapMb } });
    thread.unref();
    thread.on("message", (answer: ReadAnswer) => this.#settle(answer));
    // A thread fails because of a bug, or runs out of memory; the next request gets another.
    thread.on("error", (error: unknown) => this.#ended(error));
    thread.on("exit", () => this.#ended(new Error("the reading thread has ended")));
    return thread;
  }

  #settle(answer: ReadAnswer): void {
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

function tooMuch(): Fault {
  return new Fault("server_is_overloaded", {
    message: `The large requests that are being read here take ${readingBytesMax} bytes already (readingBytesMax).`,
  });
}
