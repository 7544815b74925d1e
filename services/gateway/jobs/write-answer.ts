import type { ServerResponse } from "node:http";
import type { Clock } from "#shared/process/clock.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { eventOf, RecordReader } from "#shared/protocol/frame.ts";
import type { BeatRow, LoadNews } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { AnswerMeter, AnswerRenderer, AnswerRendering, AnswerWriter, StreamEnds } from "./answer-parts.ts";
import { type DeliveredAnswer, wholeUsage } from "./continue-answer.ts";
import type { JobEvent } from "./job-events.ts";
import { machineBrokeRules } from "./machine-fault.ts";
import { StreamNews } from "./stream-news.ts";

/** Limits the bytes that a client leaves unread in this process, if its machine ignores credit. */
export const clientBacklogBytesMax = 8 * 1024 * 1024;

const readerOptions = { textMax: limits.answerRecordCharactersMax, broken };

/**
 * The way of an answer from the frames of its machine to the writer for its client: it reads the records, renders their
 * events, and passes the bytes on.
 */
export abstract class AnswerFlow {
  /** The tokens of a resumed answer that other gateways have counted, and its prompt with them. */
  countedTokens: number | undefined;
  /** The answer so far; undefined if no other machine may go on with it. */
  delivered: DeliveredAnswer | undefined;
  firstAtMs: number | undefined;
  /** Tokens of the answer that were delivered so far. */
  outputTokens = 0;
  /** The model by its id on the machine that was last offered the job. */
  model: string | undefined;
  protected readonly clock: Pick<Clock, "now">;
  protected readonly meter: AnswerMeter | undefined;
  protected writer: AnswerWriter | undefined;
  protected rendering: AnswerRendering | undefined;
  protected abstract renderer: AnswerRenderer;
  protected receivedTokens = 0;
  /** The tokens and the thought of an answer that earlier machines began. */
  protected earlier = { tokens: 0, thought: 0 };
  #reader = new RecordReader(readerOptions);
  /** The choices that have their finish. */
  protected readonly finished = new Set<number>();
  #latestAtMs = 0;
  protected gaps: { observe(seconds: number): void } | undefined;
  #heldBytes = 0;

  constructor({ clock, meter }: { readonly clock: Pick<Clock, "now">; readonly meter?: AnswerMeter | undefined }) {
    this.clock = clock;
    this.meter = meter;
  }

  on(event: JobEvent): void {
    if (event.kind === "data") this.#data(event.payload, event.outputTokens);
    else this.heard(event);
  }

  /** Called with every event but data. */
  protected abstract heard(event: Exclude<JobEvent, { kind: "data" }>): void;
  /** Called with the first part of the answer that is passed on. */
  protected abstract said(): void;

  hasSaid(): boolean {
    return this.firstAtMs !== undefined;
  }

  /** Another machine gives the answer, or what is missing of it. */
  protected begin(): void {
    if (this.#reader.hasBegun) this.#reader = new RecordReader(readerOptions);
    this.finished.clear();
    this.#heldBytes = 0;
  }

  #data(payload: Uint8Array, newTokens: number): void {
    const { delivered, rendering, earlier, countedTokens = 0 } = this;
    const outputTokens = earlier.tokens + newTokens;
    const events: AnswerEvent[] = [];
    for (const record of this.#reader.read(payload)) {
      const event = eventOf(record);
      if (event === undefined) throw broken("a record that is no answer event");
      if (event.kind === "finish") this.finished.add(event.choice ?? 0);
      events.push(event.kind === "usage" && earlier.tokens > 0 ? wholeUsage(event, earlier) : event);
    }
    const rendered = this.renderer.push(events);
    if (delivered !== undefined && (payload.byteLength <= delivered.freeBytes || delivered.grows(payload.byteLength))) {
      delivered.records.set(payload, delivered.records.byteLength - delivered.freeBytes);
      delivered.freeBytes -= payload.byteLength;
    }
    this.receivedTokens = outputTokens;
    // A part of a resumed answer that its client has already is not passed on, and yet counted.
    if (rendered.byteLength > 0 || this.countedTokens !== undefined) this.outputTokens = outputTokens;
    if (rendered.byteLength > 0) {
      this.passing();
      this.writer?.onData(rendered);
    } else {
      this.#heldBytes += payload.byteLength;
      this.writer?.onHold(this.#heldBytes);
    }
    const { bound } = rendering ?? {};
    if (bound !== undefined && outputTokens - countedTokens > bound.upToTokens)
      bound.used(outputTokens - countedTokens);
  }

  /** Throws if an answer that its machine calls whole is not. */
  protected assertWhole(): void {
    if (this.#reader.hasBegun || this.finished.size === 0) throw broken("an answer without its end");
  }

  /** Notes the time of a piece that is passed on. */
  protected passing(): void {
    this.#heldBytes = 0;
    const nowMs = this.clock.now();
    if (this.firstAtMs === undefined) {
      this.firstAtMs = nowMs;
      this.said();
      if (this.rendering?.streamed) this.gaps = this.meter?.streamBegan(this.model ?? "");
    } else this.gaps?.observe((nowMs - this.#latestAtMs) / 1_000);
    this.#latestAtMs = nowMs;
  }
}

function broken(what: string): Error {
  return machineBrokeRules(`it sent ${what}`);
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

const nothing = new Uint8Array();

/**
 * Writes a rendered stream to its client, as its frames arrive. The status line is held back while
 * a true status is still possible: until the first piece of the answer, or until an accepted request has waited for
 * `statusHeldMs`. Later comments keep the connection alive, and report what the request waits for.
 */
export class StreamWriter implements AnswerWriter {
  /** True once the status line was written, so that a failure can only be reported inside the stream. */
  begun = false;
  readonly #options: WriterOptions;
  readonly #body: TurnWriter;
  #news: StreamNews | undefined;
  #machine = "";
  #hasWritten = false;
  #writtenAtMs: number | undefined;
  #cutOff = false;
  #last: Uint8Array = nothing;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#body = new TurnWriter(options.response);
  }

  onAccept(machine: string, model: string): void {
    this.#options.onAccept(machine, model);
    this.#machine = machine;
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
    if (!this.begun) this.#begin();
    this.#hasWritten = true;
    if (this.#body.write(bytes) > clientBacklogBytesMax) this.#cut();
  }

  onLast(bytes: Uint8Array): void {
    this.#last = bytes;
  }

  changeLast(change: (bytes: Uint8Array) => Uint8Array): void {
    this.#last = change(this.#last);
  }

  onHold(): void {}

  onTick(nowMs: number, row: BeatRow | undefined, load?: LoadNews): void {
    const { ends, timing } = this.#options;
    const machine = this.#machine;
    if (this.#hasWritten) this.#writtenAtMs = nowMs;
    const isWaiting = !this.#hasWritten && machine !== "" && !ends.isBare;
    this.#hasWritten = false;
    if (!isWaiting) return;
    this.#news ??= new StreamNews(timing, nowMs);
    const comment = this.#news.due({ nowMs, machine, row, load, begun: this.begun, writtenAtMs: this.#writtenAtMs });
    if (comment !== undefined) this.tell(comment);
  }

  /** Writes a comment, which no client takes for a part of the answer. */
  tell(comment: string): void {
    const { ends } = this.#options;
    if (ends.isBare) return;
    this.#begin();
    if (this.#body.write(ends.waiting(comment)) > clientBacklogBytesMax) this.#cut();
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

  #begin(): void {
    if (this.begun) return;
    this.begun = true;
    if (this.#options.response.headersSent) return;
    const lines = this.#options.headers();
    lines.push("content-type", this.#options.ends.media ?? streamMedia, ...streamLines);
    this.#options.response.writeHead(200, lines);
  }

  #cut(): void {
    if (this.#cutOff) return;
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

  /** Writes bytes, and returns those that this process holds then. */
  write(bytes: Uint8Array): number {
    const response = this.#response;
    if (bytes.byteLength === 0 || response.destroyed || response.writableEnded) return 0;
    if (this.#pieces.push(bytes) === 1) process.nextTick(this.#writePieces);
    this.#pieceBytes += bytes.byteLength;
    return response.writableLength + this.#pieceBytes;
  }

  end(bytes: Uint8Array): void {
    this.write(bytes);
    this.#response.end(this.#takePieces());
  }

  readonly #writePieces = (): void => {
    const chunk = this.#takePieces();
    if (chunk !== undefined && !this.#response.destroyed) this.#response.write(chunk);
  };

  #takePieces(): Uint8Array | undefined {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    return pieces.length > 1 ? Buffer.concat(pieces) : pieces[0];
  }
}
