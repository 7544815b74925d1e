import type { ServerResponse } from "node:http";

const lineEnd = Buffer.from("\r\n");
const lastChunk = Buffer.from("0\r\n\r\n");

/**
 * Writes the body of an answer that comes in pieces. All bytes written in one turn of the event loop leave as one chunk
 * in one write. Node itself would make four pieces of each chunk and pass them on one by one. That adds half to the
 * kernel's own work for a small write.
 */
export class TurnWriter {
  readonly #response: ServerResponse;
  /** True if the body is sent in chunks. A client of HTTP/1.0 gets the bytes as they are. */
  #inChunks = false;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /**
   * Sends the status line and these headers together with the first bytes. `lines` holds a name, its value, the next
   * name.
   */
  begin(status: number, lines: string[]): void {
    const response = this.#response;
    response.writeHead(status, lines);
    // `writeHead` decides whether the body is chunked. From here on this class makes the chunks.
    this.#inChunks = response.chunkedEncoding;
    response.chunkedEncoding = false;
  }

  /** Bytes written that this process still holds, including their framing. */
  get heldBytes(): number {
    return this.#bytes + this.#response.writableLength;
  }

  write(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    if (this.#pieces.length === 0) writeAtEndOfTurn(this);
    this.#pieces.push(bytes);
    this.#bytes += bytes.byteLength;
  }

  /** Writes the gathered bytes. */
  flush(): void {
    const { destroyed, writableEnded } = this.#response;
    const chunk = this.#take();
    if (chunk === undefined || destroyed || writableEnded) return;
    const response = this.#response;
    // Without `cork`, Node would wait for another turn before it writes.
    response.cork();
    response.write(chunk);
    response.uncork();
  }

  /** Writes these last bytes and ends the body. */
  end(bytes: Uint8Array): void {
    this.write(bytes);
    const chunk = this.#take();
    if (!this.#inChunks) this.#response.end(chunk);
    else this.#response.end(chunk === undefined ? lastChunk : Buffer.concat([chunk, lastChunk]));
  }

  #take(): Uint8Array | undefined {
    const pieces = this.#pieces;
    if (pieces.length === 0) return undefined;
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = 0;
    if (this.#inChunks) return Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`, "latin1"), ...pieces, lineEnd]);
    return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
  }
}

let waiting: TurnWriter[] = [];

/** Schedules one tick for all streams with pending bytes. */
function writeAtEndOfTurn(writer: TurnWriter): void {
  if (waiting.length === 0) process.nextTick(flushAll);
  waiting.push(writer);
}

function flushAll(): void {
  const writers = waiting;
  waiting = [];
  for (const writer of writers) writer.flush();
}
