import { Worker } from "node:worker_threads";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import { bodyWent } from "#shared/process/large-garbage.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Asked } from "./asked.ts";
import { readAsked, type Outer } from "./read-asked.ts";

/** What a reading thread is sent, and what it answers: one answer to each, in their order. */
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

/** Up to this size a request is read where it is: sooner than it would have been handed over. */
const readHereBytesMax = limits.partBytes;
/** The sum of the requests that wait to be read, or are being read, beside the loop. */
export const readingBytesMax = 256 * 1024 * 1024;

/** What one of them may come to while it is read. A thread that needs more ends, and not the gateway with all its streams. */
const readingHeapMb = 1_024;

interface Waiting {
  readonly bytes: number;
  readonly settle: (answer: ReadAnswer) => void;
}

/**
 * Reads the requests of a gateway. What is large is read in a thread of its own: to read, check and write 30 MB takes
 * half a second, in which no stream of anybody else would go on.
 */
export class ReadAside {
  readonly #waiting: Waiting[] = [];
  #thread: Worker | undefined;
  #bytes = 0;

  /** Nearly every request is read at once: only one that is large is waited for. */
  read(outer: Outer, bytes: Buffer | undefined): Asked | Promise<Asked> {
    if (bytes === undefined) return readAsked(outer, bytes);
    bodyWent(bytes.byteLength);
    return bytes.byteLength > readHereBytesMax ? this.#readAside(outer, bytes) : readAsked(outer, bytes);
  }

  /** What still waits ends in a fault. */
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
    // A thread that fails is a bug, or out of memory; the next request gets another.
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
