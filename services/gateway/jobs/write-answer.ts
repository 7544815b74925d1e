import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import type { BeatRow, LoadNews } from "#shared/protocol/frame-payload.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { AnswerWriter } from "./answer-parts.ts";

/** Limits the bytes that a client leaves unread in this process, if its machine ignores credit. */
export const clientBacklogBytesMax = 8 * 1024 * 1024;

/** The bytes of a stream, besides its answer, as an API writes them. */
export interface StreamEnds {
  /** The media type of the stream; that of server-sent events unless given. */
  readonly media?: string;
  /** Sent after a success, and only then. */
  readonly whole: Uint8Array;
  /**
   * True if the stream has no place for a comment or an error, as audio has none. The status line then waits for the
   * first piece, and a failure cuts the connection.
   */
  readonly isBare?: boolean;
  /** Returns the bytes that report a failure after the first piece. */
  failed(fault: Fault): Uint8Array;
  /** Returns the bytes that keep a waiting client's connection alive and say what it waits for. */
  waiting(reason: string): Uint8Array;
}

interface WriterOptions {
  readonly response: ServerResponse;
  readonly ends: StreamEnds;
  readonly timing: Timing;
  /** Returns the further headers to send with the status line: a name, its value, the next name. */
  readonly headers: () => string[];
  readonly onAccept: (machine: string, model: string) => void;
  /** Called once, when the client reads too little of what waits for it. */
  readonly onSlow: (fault: Fault) => void;
}

const streamMedia = "text/event-stream; charset=utf-8";
const streamLines = ["cache-control", "no-cache", "x-accel-buffering", "no"] as const;

/** Response header that names the machine that gave the answer, or failed to. */
export const machineHeader = "x-trunkline-machine";
/** Response header that names the model that gave the answer, if a route led to it. */
export const modelHeader = "x-trunkline-model";

const nothing = new Uint8Array();

/**
 * Writes a rendered stream to its client, as its frames arrive. The status line is held back while
 * a true status is still possible: until the first piece of the answer, or until an accepted request has waited for
 * `statusHeldMs`. Later comments keep the connection alive, and report what the request waits for.
 */
export class StreamWriter implements AnswerWriter {
  readonly #options: WriterOptions;
  readonly #body: TurnWriter;
  #begun = false;
  #acceptedAtMs: number | undefined;
  #writtenAtMs = 0;
  #writtenSinceTick = false;
  #cutOff = false;
  #acceptPending = false;
  #toldWaitingFor = "";
  #machine = "";
  #answering = false;
  #last: Uint8Array = nothing;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#body = new TurnWriter(options.response);
  }

  /** True if the status line was written, so that a failure can only be reported inside the stream. */
  get begun(): boolean {
    return this.#begun;
  }

  onAccept(machine: string, model: string): void {
    this.#options.onAccept(machine, model);
    this.#machine = machine;
    this.#acceptPending = true;
  }

  hasLeft(): boolean {
    return this.#options.response.destroyed;
  }

  onContinue(machine: string): void {
    this.#machine = machine;
    this.tell(`continued on ${machine}`);
  }

  unreadBytes(): number {
    return this.#body.heldBytes;
  }

  onData(bytes: Uint8Array): void {
    this.#begin();
    this.#write(bytes);
    this.#answering = true;
    this.#writtenSinceTick = true;
  }

  onLast(bytes: Uint8Array): void {
    this.#last = bytes;
  }

  changeLast(change: (bytes: Uint8Array) => Uint8Array): void {
    this.#last = change(this.#last);
  }

  onHold(): void {}

  onTick(nowMs: number, row: BeatRow | undefined, load?: LoadNews): void {
    const { timing } = this.#options;
    if (this.#acceptPending) {
      this.#acceptPending = false;
      this.#acceptedAtMs ??= nowMs;
    }
    if (this.#writtenSinceTick) {
      this.#writtenSinceTick = false;
      this.#writtenAtMs = nowMs;
    }
    if (this.#acceptedAtMs === undefined || this.#options.ends.isBare) return;
    if (!this.begun) {
      if (nowMs - this.#acceptedAtMs < timing.statusHeldMs) return;
      this.#begin();
      this.#comment(this.#waitFor(row, load), nowMs);
      return;
    }
    const silentMs = nowMs - this.#writtenAtMs;
    if (silentMs < (this.#answering ? timing.commentIntervalMs : timing.newsIntervalMs)) return;
    const waitingFor = this.#waitFor(row, load);
    const intervalMs = load === undefined ? timing.commentIntervalMs : timing.loadNewsIntervalMs;
    // A new place in the queue, or a load that went on, is reported before the usual interval ends.
    if (silentMs >= intervalMs || waitingFor !== this.#toldWaitingFor) this.#comment(waitingFor, nowMs);
  }

  /** Writes a comment, which no client takes for a part of the answer. */
  tell(comment: string): void {
    const { ends } = this.#options;
    if (ends.isBare) return;
    this.#begin();
    this.#write(ends.waiting(comment));
  }

  end(): void {
    this.#begin();
    this.#body.write(this.#last);
    this.#body.end(this.#options.ends.whole);
  }

  /**
   * Ends the stream of an answer that broke off after its first bytes. No client may take it for a success.
   */
  fail(fault: Fault): void {
    const { ends, response } = this.#options;
    if (ends.isBare) response.destroy();
    else this.#body.end(ends.failed(fault));
  }

  #waitFor(row: BeatRow | undefined, load: LoadNews | undefined): string {
    if (row === undefined) return "waiting";
    const [, state, place] = row;
    if (load === undefined) return state === "queued" && place > 0 ? `queued at ${place}` : state;
    const seconds = Math.ceil(load.leftMs / 1_000);
    return `loading ${load.model} on ${this.#machine}, ${load.percent} %, about ${seconds} s`;
  }

  #comment(waitingFor: string, nowMs: number): void {
    this.#write(this.#options.ends.waiting(waitingFor));
    this.#toldWaitingFor = waitingFor;
    this.#writtenAtMs = nowMs;
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    if (this.#options.response.headersSent) return;
    const lines = this.#options.headers();
    lines.push("content-type", this.#options.ends.media ?? streamMedia, ...streamLines);
    this.#options.response.writeHead(200, lines);
  }

  #write(bytes: Uint8Array): void {
    this.#body.write(bytes);
    if (this.#cutOff || this.#body.heldBytes <= clientBacklogBytesMax) return;
    this.#cutOff = true;
    const message = `The client left more than ${clientBacklogBytesMax} bytes unread (clientBacklogBytesMax).`;
    this.#options.onSlow(new Fault("slow_client", { message }));
  }
}

/**
 * Writes the body of an answer that comes in pieces. All pieces of one turn of the event loop leave as one chunk in one
 * write at the end of the turn. Node's own `cork` does not serve: Node 22 and 24 write the last corked chunk behind the
 * end of the body.
 */
export class TurnWriter {
  readonly #response: ServerResponse;
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Bytes written that this process still holds, including their framing. */
  get heldBytes(): number {
    return this.#response.writableLength + this.#pieceBytes;
  }

  write(bytes: Uint8Array): void {
    if (bytes.byteLength === 0 || this.#response.destroyed || this.#response.writableEnded) return;
    if (this.#pieces.push(bytes) === 1) process.nextTick(() => this.#writePieces());
    this.#pieceBytes += bytes.byteLength;
  }

  end(bytes: Uint8Array): void {
    this.write(bytes);
    this.#response.end(this.#takePieces());
  }

  #writePieces(): void {
    const chunk = this.#takePieces();
    if (chunk !== undefined && !this.#response.destroyed) this.#response.write(chunk);
  }

  #takePieces(): Uint8Array | undefined {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    return pieces.length > 1 ? Buffer.concat(pieces) : pieces[0];
  }
}
