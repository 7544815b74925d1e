import { StringDecoder } from "node:string_decoder";
import { createParser, type EventSourceParser } from "eventsource-parser";

const newline = 0x0a;

/**
 * Splits a byte stream into lines, which end in a line feed. It splits the bytes and decodes each line, so that a
 * character across two pieces stays whole. A line above the limit throws the error of `tooLong`, and no more bytes than
 * the limit are ever held.
 */
export class LineCutter {
  readonly #lineBytesMax: number;
  readonly #tooLong: () => Error;
  #begun: Uint8Array[] = [];
  #begunBytes = 0;

  constructor(lineBytesMax: number, tooLong: () => Error) {
    this.#lineBytesMax = lineBytesMax;
    this.#tooLong = tooLong;
  }

  /** Passes on each line that this piece completes, also the lines before a line above the limit. */
  push(piece: Uint8Array, onLine: (line: string) => void): void {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, from)) {
      this.#assertRoom(at - from);
      const line = this.#begunBytes > 0 ? this.#ended(bytes.subarray(from, at)) : bytes.toString("utf8", from, at);
      from = at + 1;
      onLine(line);
    }
    const rest = bytes.subarray(from);
    if (rest.byteLength === 0) return;
    this.#assertRoom(rest.byteLength);
    this.#begun.push(rest);
    this.#begunBytes += rest.byteLength;
  }

  /** Passes on the last line, if it lacks its line feed. */
  end(onLine: (line: string) => void): void {
    if (this.#begunBytes > 0) onLine(this.#ended(new Uint8Array()));
  }

  /** Returns the lines that this piece completes, without empty ones. */
  take(piece: Uint8Array): string[] {
    const lines: string[] = [];
    this.push(piece, (line) => {
      if (line.trim() !== "") lines.push(line);
    });
    return lines;
  }

  #assertRoom(bytes: number): void {
    if (this.#begunBytes + bytes > this.#lineBytesMax) throw this.#tooLong();
  }

  #ended(end: Uint8Array): string {
    const line = Buffer.concat([...this.#begun, end]).toString();
    this.#begun = [];
    this.#begunBytes = 0;
    return line;
  }
}

/** An event of a stream, or a comment: a line by which the sender only shows that it is alive. */
export type SentEvent =
  | { readonly kind: "event"; readonly name: string; readonly data: string }
  | { readonly kind: "comment"; readonly text: string };

interface EventLimits {
  readonly bytesMax: number;
  readonly tooLong: () => Error;
  /** Returns the error for a line that no stream of events has. */
  readonly noEvents: (line: string) => Error;
}

/**
 * Splits a body of server-sent events into its events. The last event may lack the empty line behind it. A body of another
 * kind, such as a page of a proxy, throws the error of `noEvents`, and an event above the limit that of `tooLong`.
 */
export class SentEvents {
  readonly #decoder = new StringDecoder();
  readonly #parser: EventSourceParser;
  #onEvent: (event: SentEvent) => void = () => undefined;
  #first = true;

  constructor({ bytesMax, tooLong, noEvents }: EventLimits) {
    this.#parser = createParser({
      maxBufferSize: bytesMax,
      onEvent: ({ event: name = "", data }) => {
        // The parser bounds only what it holds between two pieces.
        if (data.length > bytesMax) throw tooLong();
        this.#onEvent({ kind: "event", name, data });
      },
      onComment: (text) => this.#onEvent({ kind: "comment", text: text.trim() }),
      onError({ type, line = "" }) {
        if (type === "max-buffer-size-exceeded") throw tooLong();
        if (type === "unknown-field") throw noEvents(line);
      },
    });
  }

  push(piece: Uint8Array, onEvent: (event: SentEvent) => void): void {
    this.#feed(this.#decoder.write(piece), onEvent);
  }

  end(onEvent: (event: SentEvent) => void): void {
    this.#feed(`${this.#decoder.end()}\n\n`, onEvent);
  }

  #feed(given: string, onEvent: (event: SentEvent) => void): void {
    const text = this.#first && given.startsWith(byteOrderMark) ? given.slice(1) : given;
    if (given !== "") this.#first = false;
    this.#onEvent = onEvent;
    this.#parser.feed(text);
  }
}

const byteOrderMark = "\uFEFF";
