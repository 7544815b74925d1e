import { Fault } from "#shared/fault/fault.ts";
import { runtimeLineBytesMax } from "./json-lines.ts";

/** An event of a stream, or a comment: a line by which a runtime only shows that it is alive. */
export type SentEvent =
  | { readonly kind: "event"; readonly name: string; readonly data: string }
  | { readonly kind: "comment"; readonly text: string };

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineEnd = /\r\n|\n|\r/;
const byteOrderMark = "\uFEFF";

/** The fields of the standard. `id` and `retry` have no meaning for an answer. */
const fields = new Set(["data", "event", "id", "retry"]);

/**
 * Splits a body of server-sent events into its events, as its pieces come. Lines end as the standard allows: `\n`,
 * `\r\n` or `\r`. The complete lines of a piece are split off as bytes and decoded at once. A character that spans two
 * pieces therefore stays whole. The last event may lack the empty line behind it.
 *
 * A body of another kind, such as a page of a proxy, is a fault. An event longer than `eventBytesMax` is a fault too,
 * and no more bytes than that are ever held. Events before the fault are still added.
 */
export class SentEvents {
  readonly #bytesMax: number;
  #unfinished: Uint8Array[] = [];
  #unfinishedBytes = 0;
  /** True if the last byte was a carriage return: a line feed after it ends no second line. */
  #returned = false;
  #first = true;
  #name = "";
  #data: string | undefined;
  #characters = 0;

  constructor(options?: { readonly eventBytesMax: number }) {
    this.#bytesMax = options?.eventBytesMax ?? runtimeLineBytesMax;
  }

  /** Adds the events that this piece completes. */
  push(piece: Uint8Array, events: SentEvent[]): void {
    const begun = this.#returned && piece[0] === lineFeed ? piece.subarray(1) : piece;
    if (piece.byteLength > 0) this.#returned = piece.at(-1) === carriageReturn;
    const complete = Math.max(begun.lastIndexOf(lineFeed), begun.lastIndexOf(carriageReturn)) + 1;
    if (complete === 0) {
      this.#keep(begun);
      return;
    }
    const whole = this.#take(begun.subarray(0, complete));
    const isLong = whole.byteLength > this.#bytesMax;
    const text = decoded(whole);
    let from = 0;
    if (text.includes("\r")) {
      const lines = text.split(lineEnd);
      lines.pop();
      for (const line of lines) this.#line(line, isLong, events);
    } else {
      for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
        if (!isLong && this.#atStart && text[at + 1] === "\n" && text.startsWith(dataField, from)) {
          events.push({ kind: "event", name: "", data: text.slice(from + dataField.length, at) });
          from = at + 2;
        } else {
          this.#line(text.slice(from, at), isLong, events);
          from = at + 1;
        }
      }
    }
    if (complete < begun.byteLength) this.#keep(begun.subarray(complete));
  }

  /** Ends the body. */
  end(events: SentEvent[]): void {
    if (this.#unfinishedBytes > 0) this.#line(decoded(this.#take(nothing)), false, events);
    this.#dispatch(events);
  }

  /**
   * True if no line of the current event has come yet. An event of a single data line, as nearly all are, is then added
   * directly.
   */
  get #atStart(): boolean {
    return !this.#first && this.#data === undefined && this.#name === "";
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#unfinishedBytes += bytes.byteLength;
    if (this.#unfinishedBytes > this.#bytesMax) throw tooLong(this.#bytesMax);
    this.#unfinished.push(bytes);
  }

  /** Returns the kept bytes, followed by these bytes. */
  #take(bytes: Uint8Array): Uint8Array {
    if (this.#unfinishedBytes === 0) return bytes;
    const all = Buffer.concat([...this.#unfinished, bytes]);
    this.#unfinished = [];
    this.#unfinishedBytes = 0;
    return all;
  }

  /** Reads one line. `mayBeLong` is true if its block is over the limit, so that the line alone may be too long. */
  #line(given: string, mayBeLong: boolean, events: SentEvent[]): void {
    if (mayBeLong && Buffer.byteLength(given) > this.#bytesMax) throw tooLong(this.#bytesMax);
    const line = this.#first && given.startsWith(byteOrderMark) ? given.slice(1) : given;
    this.#first = false;
    if (line === "") {
      this.#dispatch(events);
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      events.push({ kind: "comment", text: line.slice(1).trim() });
      return;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") this.#append(value);
    else if (field === "event") this.#name = value;
    else if (!fields.has(field)) throw noEvents(line);
  }

  #append(value: string): void {
    this.#characters += value.length + 1;
    if (this.#characters > this.#bytesMax) throw tooLong(this.#bytesMax);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #dispatch(events: SentEvent[]): void {
    if (this.#data !== undefined) events.push({ kind: "event", name: this.#name, data: this.#data });
    this.#name = "";
    this.#data = undefined;
    this.#characters = 0;
  }
}

const dataField = "data: ";
const nothing = new Uint8Array();

function decoded(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

function tooLong(bytesMax: number): Fault {
  return new Fault("upstream_error", {
    message: `The runtime sent an event longer than ${bytesMax} bytes (runtimeLineBytesMax).`,
  });
}

function noEvents(line: string): Fault {
  const looksLike = line.trimStart().startsWith("<") ? "HTML" : line.trimStart().startsWith("{") ? "JSON" : "text";
  return new Fault("upstream_error", {
    message: "The runtime's answer is no stream of events.",
    internal: `${looksLike} where server-sent events were asked for`,
  });
}
