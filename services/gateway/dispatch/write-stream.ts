import type { ServerResponse } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import type { BeatRow } from "#shared/protocol/frame-payload.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobListener } from "./follow-frames.ts";
import { TurnWriter } from "./turn-writer.ts";

/** What a client may leave unread in this process where its machine knows of no credit and sends all it has. */
export const clientBacklogBytesMax = 8 * 1024 * 1024;

/** How clients of an API know that a stream has ended, and how. */
export interface StreamEnds {
  /** What comes after a success and only then. */
  readonly whole: Uint8Array;
  /** What tells a failure after the first piece. */
  failed(fault: Fault): Uint8Array;
}

interface WriterOptions {
  readonly response: ServerResponse;
  readonly ends: StreamEnds;
  readonly timing: Timing;
  /** The headers that are due beside its own when its status goes out: a name, its value, the next name. */
  readonly headers: () => string[];
  readonly onAccept: (machine: string) => void;
  /** Called once, when the client reads too little of what waits for it. */
  readonly onSlow: (fault: Fault) => void;
}

const streamLines = [
  "content-type",
  "text/event-stream; charset=utf-8",
  "cache-control",
  "no-cache",
  "x-accel-buffering",
  "no",
] as const;

/** Says on every answer which machine gave it, or failed to. */
export const machineHeader = "x-trunkline-machine";

const newline = 0x0a;

/**
 * Writes a stream to its client, frame by frame as they come and byte for byte. The status line is held back while a
 * true status is still possible: until the first piece of the answer, or until an accepted request has waited for
 * `statusHeldMs`. From then on comments keep the connection alive, and say what it waits for.
 */
export class StreamWriter implements JobListener {
  readonly #options: WriterOptions;
  readonly #body: TurnWriter;
  #begun = false;
  #acceptedAtMs: number | undefined;
  #writtenAtMs = 0;
  #writtenSinceTick = false;
  #cutOff = false;
  /** Whether the last event is complete. A large one comes in several pieces, and nothing may come between them. */
  #betweenEvents = true;
  #acceptPending = false;
  #toldWaitingFor = "";
  #writtenBytes = 0;
  /** How much its client had taken when something was left unread, and since when that is so. */
  #unread: { readonly takenBytes: number; readonly sinceMs: number } | undefined;
  #answering = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#body = new TurnWriter(options.response);
  }

  /** Whether the client has a status, so that a failure can only be told inside the stream. */
  get begun(): boolean {
    return this.#begun;
  }

  onAccept(machine: string): void {
    this.#options.onAccept(machine);
    this.#acceptPending = true;
  }

  backlogBytes(): number {
    return this.#body.heldBytes;
  }

  onData(bytes: Uint8Array): void {
    this.#begin();
    this.#write(bytes);
    this.#answering = true;
    this.#writtenSinceTick = true;
    this.#betweenEvents = bytes[bytes.length - 1] === newline && bytes[bytes.length - 2] === newline;
  }

  onTick(nowMs: number, row: BeatRow | undefined): void {
    const { timing } = this.#options;
    if (this.#acceptPending) {
      this.#acceptPending = false;
      this.#acceptedAtMs ??= nowMs;
    }
    if (this.#writtenSinceTick) {
      this.#writtenSinceTick = false;
      this.#writtenAtMs = nowMs;
    }
    this.#judgeReading(nowMs);
    if (this.#acceptedAtMs === undefined || !this.#betweenEvents) return;
    if (!this.begun) {
      if (nowMs - this.#acceptedAtMs < timing.statusHeldMs) return;
      this.#begin();
      this.#comment(waitFor(row), nowMs);
      return;
    }
    const silentMs = nowMs - this.#writtenAtMs;
    if (silentMs < (this.#answering ? timing.commentIntervalMs : timing.newsIntervalMs)) return;
    const waitingFor = waitFor(row);
    // Another place in the queue, or a model that is loaded now, is worth telling before the time.
    if (silentMs >= timing.commentIntervalMs || waitingFor !== this.#toldWaitingFor) this.#comment(waitingFor, nowMs);
  }

  /** The answer is whole. */
  end(): void {
    this.#begin();
    this.#body.end(this.#options.ends.whole);
  }

  /**
   * The answer broke off after its first bytes, which no client may take for a success. Within an event nothing can be
   * told that a client could read, so that the connection breaks: that too no client takes for a success.
   */
  fail(fault: Fault): void {
    const { response, ends } = this.#options;
    if (this.#betweenEvents) this.#body.end(ends.failed(fault));
    else response.destroy();
  }

  #comment(waitingFor: string, nowMs: number): void {
    this.#write(Buffer.from(`: ${waitingFor}\n\n`));
    this.#toldWaitingFor = waitingFor;
    this.#writtenAtMs = nowMs;
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const lines = this.#options.headers();
    lines.push(...streamLines);
    this.#body.begin(200, lines);
  }

  #write(bytes: Uint8Array): void {
    this.#body.write(bytes);
    this.#writtenBytes += bytes.byteLength;
    if (this.#body.heldBytes <= clientBacklogBytesMax) return;
    this.#cut(`The client left more than ${clientBacklogBytesMax} bytes unread (clientBacklogBytesMax).`);
  }

  /** A client that takes nothing for too long holds a machine up, and will hardly come back. */
  #judgeReading(nowMs: number): void {
    const { timing } = this.#options;
    const { heldBytes } = this.#body;
    // What waits has the framing of its chunks about it, so that this falls a little with each comment.
    const takenBytes = this.#writtenBytes - heldBytes;
    if (heldBytes === 0) this.#unread = undefined;
    else if (this.#unread === undefined || takenBytes > this.#unread.takenBytes) {
      this.#unread = { takenBytes, sinceMs: nowMs };
    } else if (nowMs - this.#unread.sinceMs > timing.clientStallMs) {
      this.#cut(`The client took nothing of the answer for ${timing.clientStallMs} ms (clientStallMs).`);
    }
  }

  #cut(message: string): void {
    if (this.#cutOff) return;
    this.#cutOff = true;
    this.#options.onSlow(new Fault("slow_client", { message }));
  }
}

function waitFor(row: BeatRow | undefined): string {
  if (row === undefined) return "waiting";
  const [, state, place] = row;
  return state === "queued" && place > 0 ? `queued at ${place}` : state;
}
