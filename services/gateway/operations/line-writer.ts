import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import { linesMedia, type ManageLine } from "#shared/model/manage-line.ts";
import { clientBacklogBytesMax } from "../dispatch/write-stream.ts";

const linesHeaders = { "content-type": linesMedia, "cache-control": "no-store", "x-accel-buffering": "no" } as const;

/**
 * Writes an answer of JSON lines as they come. The status line goes out with the first of them, so that what is refused
 * or fails before it has its true status.
 */
export class LineWriter {
  readonly #response: ServerResponse;
  readonly #onBacklog: (fault: Fault) => void;

  /** `onBacklog` is called when the client has left too much unread. */
  constructor(response: ServerResponse, onBacklog: (fault: Fault) => void) {
    this.#response = response;
    this.#onBacklog = onBacklog;
  }

  /** Whether the client has a status, so that a failure can only be told in a line. */
  get begun(): boolean {
    return this.#response.headersSent;
  }

  write(line: ManageLine): void {
    if (!this.begun) this.#response.writeHead(200, linesHeaders);
    this.#response.write(`${JSON.stringify(line)}\n`);
    if (this.#response.writableLength <= clientBacklogBytesMax) return;
    this.#onBacklog(
      new Fault("slow_client", {
        message: `The client left more than ${clientBacklogBytesMax} bytes unread (clientBacklogBytesMax).`,
      }),
    );
  }

  /** With the line that says how it went. */
  end(line: ManageLine): void {
    this.write(line);
    this.#response.end();
  }
}
