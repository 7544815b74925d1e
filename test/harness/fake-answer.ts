import { once } from "node:events";
import type { ServerResponse } from "node:http";

/** The answer to one request, byte by byte as a test gives it. What was written is on its way when a call returns. */
export abstract class FakeAnswer {
  readonly #response: ServerResponse;
  readonly #contentType: string;

  protected constructor(response: ServerResponse, contentType: string) {
    this.#response = response;
    this.#contentType = contentType;
  }

  raw(bytes: string | Uint8Array): void {
    this.rawWith(200, bytes);
  }

  /** The first bytes of an answer with this status, which may be followed by more. */
  rawWith(status: number, bytes: string | Uint8Array): void {
    if (!this.#response.headersSent) this.#response.writeHead(status, { "content-type": this.#contentType });
    this.#response.write(bytes);
  }

  /** Sends no more before the client has taken what was written. */
  async drained(): Promise<void> {
    if (!this.#response.writableNeedDrain) return;
    const seen = new AbortController();
    await Promise.race(["drain", "close"].map((name) => once(this.#response, name, { signal: seen.signal })));
    seen.abort();
  }

  /** Nothing more can be sent: it was ended, or its client left. */
  get ended(): boolean {
    return this.#response.writableEnded || this.#response.destroyed;
  }

  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  refuseWith(status: number, answer: { readonly contentType: string; readonly body: string }): void {
    this.#response.writeHead(status, { "content-type": answer.contentType }).end(answer.body);
  }
}
