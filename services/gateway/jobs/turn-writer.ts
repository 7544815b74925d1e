import type { ServerResponse } from "node:http";

/**
 * Writes the body of an answer that comes in pieces. All bytes written in one turn of the event loop leave as one chunk
 * in one write, because the response stays corked until the end of the turn.
 */
export class TurnWriter {
  readonly #response: ServerResponse;
  #isCorked = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /**
   * Sends the status line and these headers together with the first bytes. `lines` holds a name, its value, the next
   * name.
   */
  begin(status: number, lines: string[]): void {
    this.#response.writeHead(status, lines);
  }

  /** Bytes written that this process still holds, including their framing. */
  get heldBytes(): number {
    return this.#response.writableLength;
  }

  write(bytes: Uint8Array): void {
    const response = this.#response;
    if (bytes.byteLength === 0 || response.destroyed || response.writableEnded) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      response.cork();
      process.nextTick(() => this.#uncork());
    }
    response.write(bytes);
  }

  /** Writes these last bytes and ends the body. */
  end(bytes: Uint8Array): void {
    this.write(bytes);
    // `end` uncorks the response itself.
    this.#isCorked = false;
    this.#response.end();
  }

  #uncork(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#response.uncork();
  }
}
