import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import { linesMedia, type ManageLine } from "#shared/model/model.ts";
import { clientBacklogBytesMax } from "../dispatch/write-stream.ts";

const linesHeaders = { "content-type": linesMedia, "cache-control": "no-store", "x-accel-buffering": "no" } as const;

/**
 * Writes an answer as JSON lines. The status line is sent with the first JSON line, so a failure before that has its
 * own status.
 */
export class LineWriter {
  readonly #response: ServerResponse;
  readonly #onBacklog: (fault: Fault) => void;

  /** Calls `onBacklog` when the client's unread backlog exceeds `clientBacklogBytesMax`. */
  constructor(response: ServerResponse, onBacklog: (fault: Fault) => void) {
    this.#response = response;
    this.#onBacklog = onBacklog;
  }

  /** True if the status was sent. A failure can then only be reported in a line. */
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

  /** Writes the last line, which reports the outcome, and ends the response. */
  end(line: ManageLine): void {
    this.write(line);
    this.#response.end();
  }
}
