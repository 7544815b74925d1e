import type { ServerResponse } from "node:http";

const lineEnd = Buffer.from("\r\n");
const lastChunk = Buffer.from("0\r\n\r\n");

/**
 * The body of an answer that comes in pieces: all that is written in one turn of the event loop leaves as one chunk in
 * one write. Node itself would make four pieces of each, and hand them on one by one; to the kernel's own work for a
 * small write that adds a half.
 */
export class TurnWriter {
  readonly #response: ServerResponse;
  /** Whether the client is sent chunks; one of HTTP/1.0 is sent the bytes as they are. */
  #inChunks = false;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Sends the status line with what is written first, and these headers: a name, its value, the next name. */
  begin(status: number, lines: string[]): void {
    const response = this.#response;
    response.writeHead(status, lines);
    // With the head it is settled how the body goes; from here on its chunks are made here.
    this.#inChunks = response.chunkedEncoding;
    response.chunkedEncoding = false;
  }

  /** What this process still holds of what was written, its framing included. */
  get heldBytes(): number {
    return this.#bytes + this.#response.writableLength;
  }

  write(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    if (this.#pieces.length === 0) writeAtEndOfTurn(this);
    this.#pieces.push(bytes);
    this.#bytes += bytes.byteLength;
  }

  /** Writes what was gathered. */
  flush(): void {
    const { destroyed, writableEnded } = this.#response;
    const chunk = this.#take();
    if (chunk === undefined || destroyed || writableEnded) return;
    const response = this.#response;
    // Node would wait for another turn to write what is not held together by hand.
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

/** One tick for all streams that something came for. */
function writeAtEndOfTurn(writer: TurnWriter): void {
  if (waiting.length === 0) process.nextTick(flushAll);
  waiting.push(writer);
}

function flushAll(): void {
  const writers = waiting;
  waiting = [];
  for (const writer of writers) writer.flush();
}
