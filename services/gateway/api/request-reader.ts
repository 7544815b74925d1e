import { Fault } from "#shared/fault/fault.ts";
import { WorkThread } from "#shared/process/work-thread.ts";
import { limits } from "#shared/protocol/limits.ts";
import { readRequest, type Outer, type ReadRequest } from "./read-request.ts";

/** An order to the reading thread. */
export interface ReadOrder {
  readonly outer: Outer;
  readonly bytes: Uint8Array;
}

/** Up to this size a request is read in the main thread: that is faster than handing it over. */
const readHereBytesMax = limits.partBytes;
/** Bytes of all requests that the reading thread reads, or that wait for it. */
export const readingBytesMax = 256 * 1024 * 1024;

/** Reads the requests of a gateway, the large ones in a thread of their own. */
export class RequestReader {
  readonly #thread = new WorkThread<ReadOrder, ReadRequest>(new URL("./reading-thread.ts", import.meta.url));

  /** Reads a request. Only a large one returns a promise; nearly every request is read at once. */
  read(outer: Outer, bytes: Buffer | undefined): ReadRequest | Promise<ReadRequest> {
    if (bytes === undefined || bytes.byteLength <= readHereBytesMax) return readRequest(outer, bytes);
    if (this.#thread.bytes + bytes.byteLength > readingBytesMax) return Promise.reject(tooMuch());
    return this.#thread.run({ outer, bytes }, bytes);
  }

  /** Stops the reading thread; requests that still wait end in a fault. */
  stop(): Promise<void> {
    return this.#thread.stop();
  }
}

function tooMuch(): Fault {
  return new Fault("server_is_overloaded", {
    message: `The large requests that this gateway reads hold ${readingBytesMax} bytes already (readingBytesMax).`,
  });
}
