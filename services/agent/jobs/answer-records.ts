import { randomBytes } from "node:crypto";
import type { AnswerEvent, FinishReason, Usage } from "#shared/protocol/answer-events.ts";
import { addRecords, type DataRecord, openRecord, piecesOf, recordTextMax } from "#shared/protocol/frame.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import type { EmitEvents } from "../runtimes/runtime.ts";

/** The job that an answer is written into. */
interface WrittenBytes {
  readonly signal: AbortSignal;
  write(records: readonly DataRecord[], outputTokens: number): Promise<void> | undefined;
}

/**
 * Normalises a runtime's events, so that a stream and a whole answer come from the same events. It drops empty texts,
 * announces every tool call once with a unique id, and ends with exactly one finish for each choice. At most one usage
 * follows the finishes. Runtimes send finishes and usage in any order; their events are not trusted any further.
 */
export class AnswerAssembly {
  readonly #choices = new Map<number, ChoiceSoFar>();
  /** Ids of the tool calls so far. */
  readonly #ids = new Set<string>();
  #usage: Extract<AnswerEvent, { kind: "usage" }> | undefined;
  #outputTokens = 0;
  readonly #tellsStop: boolean;
  /** False for an answer whose pieces are no tokens. */
  readonly #countsPieces: boolean;

  constructor({ tellsStop = false, kind }: Partial<Pick<JobHead, "tellsStop" | "kind">> = {}) {
    this.#tellsStop = tellsStop;
    this.#countsPieces = kind !== "media";
  }

  /**
   * Output tokens so far, counted in pieces: runtimes send one token at a time. The exact number comes with the usage.
   */
  get outputTokens(): number {
    return this.#usage?.completionTokens ?? this.#outputTokens;
  }

  get usage(): Usage | undefined {
    if (this.#usage === undefined) return undefined;
    const { kind: _, ...usage } = this.#usage;
    return usage;
  }

  get finishReason(): FinishReason | undefined {
    return this.#choices.get(0)?.finishReason;
  }

  /** Returns the function that writes a runtime's events into a job. */
  writingTo(job: WrittenBytes): EmitEvents {
    return (events) => (job.signal.aborted ? undefined : this.#write(this.push(events), job));
  }

  /** Writes the closing events into a job. */
  endIn(job: WrittenBytes): void {
    if (!job.signal.aborted) void this.#write(this.end(), job);
  }

  push(events: readonly AnswerEvent[]): AnswerEvent[] {
    const regular: AnswerEvent[] = [];
    for (const event of events) {
      const kept = this.#take(event);
      if (kept !== undefined) regular.push(kept);
    }
    return regular;
  }

  /**
   * Returns the closing events; call it once, when the runtime has ended. Throws when a choice has no finish or when a
   * choice of several is missing: the answer is incomplete.
   */
  end(): AnswerEvent[] {
    if (this.#choices.size === 0) throw brokenOff();
    const ends: AnswerEvent[] = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([choice, { finishReason: reason, stop }], place) => {
        if (reason === undefined || choice !== place) throw brokenOff();
        if (choice > 0) return { kind: "finish", choice, reason };
        const tellsStop = this.#tellsStop && reason === "stop" && stop !== undefined;
        return { kind: "finish", reason, ...(tellsStop && { stop }) };
      });
    if (this.#usage !== undefined) ends.push(this.#usage);
    return ends;
  }

  #write(events: readonly AnswerEvent[], job: WrittenBytes): Promise<void> | undefined {
    const records: DataRecord[] = [];
    for (const event of events) addRecords(event, records);
    return job.write(records, this.outputTokens);
  }

  #take(event: AnswerEvent): AnswerEvent | undefined {
    switch (event.kind) {
      case "text":
      case "reasoning":
        if (event.text === "") return undefined;
        this.#choiceOf(event);
        if (this.#countsPieces) this.#outputTokens += 1;
        return event;
      case "tool-call-start":
        this.#choiceOf(event).start(event.index);
        return { ...event, id: this.#ownId(event.id) };
      case "tool-call-delta":
        this.#choiceOf(event).assertCall(event.index);
        if (event.arguments === "") return undefined;
        this.#outputTokens += 1;
        return event;
      case "finish": {
        const choice = this.#choiceOf(event);
        choice.reason = event.reason;
        choice.stop = event.stop;
        return undefined;
      }
      case "embedding":
      case "scores":
      case "audio":
        return event;
      case "usage":
        this.#usage = event;
        return undefined;
    }
  }

  #choiceOf({ choice = 0 }: { readonly choice?: number | undefined }): ChoiceSoFar {
    return this.#choices.getOrInsertComputed(choice, () => new ChoiceSoFar());
  }

  /** Returns an id that is unique across all choices: clients refer to a tool call by its id alone. */
  #ownId(given: string | undefined): string {
    const isNone = given === undefined || given === "" || this.#ids.has(given);
    const id = isNone ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

class ChoiceSoFar {
  reason: FinishReason | undefined;
  stop: string | undefined;
  readonly #calls = new Set<number>();

  /**
   * Corrects the finish reason: `tool_calls` instead of `stop` with tool calls, and `stop` instead of `tool_calls`
   * without.
   */
  get finishReason(): FinishReason | undefined {
    const called = this.#calls.size > 0;
    if (this.reason === "stop" && called) return "tool_calls";
    return this.reason === "tool_calls" && !called ? "stop" : this.reason;
  }

  start(call: number): void {
    if (this.#calls.has(call)) throw irregular(`tool call ${call} started twice`);
    this.#calls.add(call);
  }

  assertCall(call: number): void {
    if (!this.#calls.has(call)) throw irregular(`tool call ${call} has arguments but no start`);
  }
}

function brokenOff(): Fault {
  return new Fault("upstream_error", {
    message: "The model's answer broke off before its end.",
    internal: "the runtime ended its answer without a finish reason",
  });
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's answer could not be understood.", internal: what });
}

/** A record that waits, or a piece of one that is longer than `recordTextMax`. */
interface WaitingRecord {
  /** Undefined for a piece of a long record: its text goes out as it is. */
  readonly head: DataRecord["head"] | undefined;
  text: string;
  /** The bytes of `text`, without those that open the record. */
  textBytes: number;
}

/** A record's head, length and colon, whatever its length. */
const openBytesMax = "t:".length + String(recordTextMax).length;

const encoder = new TextEncoder();

/** The records of one job that are not sent yet. */
export class WaitingRecords {
  #waiting: WaitingRecord[] = [];
  #bytes = 0;

  /** The bytes that all of them take in frames. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a record. With `joining`, a text becomes part of the text before it. */
  push(record: DataRecord, joining: boolean): void {
    const { head, text } = record;
    if (text.length > recordTextMax) {
      for (const piece of piecesOf(openRecord(record) + text)) this.#add(undefined, piece);
      return;
    }
    const last = joining && isText(head) ? this.#waiting.at(-1) : undefined;
    if (last === undefined || last.head !== head || last.text.length + text.length > recordTextMax) {
      this.#add(head, text);
      return;
    }
    this.#bytes -= sizeOf(last);
    last.text += text;
    last.textBytes += Buffer.byteLength(text);
    this.#bytes += sizeOf(last);
  }

  /**
   * Takes records in their written form, up to `creditBytes` and about `bytesMax`. A text that is too long for both is
   * cut. Another record is taken even beyond `bytesMax` when it is the first. Returns an empty text when no record fits.
   */
  take(bytesMax: number, creditBytes: number): string {
    let room = Math.min(bytesMax, creditBytes);
    let written = "";
    let taken = 0;
    for (const record of this.#waiting) {
      const bytes = sizeOf(record);
      if (bytes > room) {
        if (isText(record.head)) written += this.#cut(record, room);
        if (isText(record.head) || taken > 0 || bytes > creditBytes) break;
      }
      written += writtenOf(record.head, record.text);
      room -= bytes;
      this.#bytes -= bytes;
      taken += 1;
    }
    if (taken === this.#waiting.length) this.#waiting = [];
    else this.#waiting.splice(0, taken);
    return written;
  }

  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
  }

  #add(head: WaitingRecord["head"], text: string): void {
    const record = { head, text, textBytes: Buffer.byteLength(text) };
    this.#waiting.push(record);
    this.#bytes += sizeOf(record);
  }

  /** Takes the beginning of a text as a record of its own, in at most this many bytes. */
  #cut(record: WaitingRecord, room: number): string {
    if (room <= openBytesMax) return "";
    const { read, written } = encoder.encodeInto(record.text, new Uint8Array(room - openBytesMax));
    if (read === 0) return "";
    const begin = writtenOf(record.head, record.text.slice(0, read));
    this.#bytes -= sizeOf(record);
    record.text = record.text.slice(read);
    record.textBytes -= written;
    this.#bytes += sizeOf(record);
    return begin;
  }
}

function isText(head: WaitingRecord["head"]): boolean {
  return head === "t" || head === "r";
}

function writtenOf(head: WaitingRecord["head"], text: string): string {
  return head === undefined ? text : openRecord({ head, text }) + text;
}

function sizeOf({ head, text, textBytes }: WaitingRecord): number {
  if (head === undefined) return textBytes;
  return "t:".length + String(text.length).length + textBytes;
}
