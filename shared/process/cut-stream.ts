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

const byteOrderMark = "\uFEFF";

/** The fields of the standard. `id` and `retry` have no meaning for an answer. */
const eventFields = new Set(["data", "event", "id", "retry"]);

/**
 * Splits a body of server-sent events into its events. Lines end as the standard allows: `\n`, `\r\n` or `\r`. The last
 * event may lack the empty line behind it. A body of another kind, such as a page of a proxy, throws the error of
 * `noEvents`, and an event above the limit that of `tooLong`.
 */
export class SentEvents {
  readonly #limits: EventLimits;
  readonly #lines: LineCutter;
  #first = true;
  #name = "";
  #data: string | undefined;
  #characters = 0;

  constructor(limits: EventLimits) {
    this.#limits = limits;
    this.#lines = new LineCutter(limits.bytesMax, limits.tooLong);
  }

  push(piece: Uint8Array, onEvent: (event: SentEvent) => void): void {
    this.#lines.push(piece, (line) => this.#readLines(line, onEvent));
  }

  end(onEvent: (event: SentEvent) => void): void {
    this.#lines.end((line) => this.#readLines(line, onEvent));
    this.#dispatch(onEvent);
  }

  /** Reads the text up to a line feed, which may hold more lines that end in carriage returns. */
  #readLines(text: string, onEvent: (event: SentEvent) => void): void {
    if (!text.includes("\r")) return this.#readLine(text, onEvent);
    const ended = text.endsWith("\r") ? text.slice(0, -1) : text;
    for (const line of ended.split("\r")) this.#readLine(line, onEvent);
  }

  #readLine(given: string, onEvent: (event: SentEvent) => void): void {
    const line = this.#first && given.startsWith(byteOrderMark) ? given.slice(1) : given;
    this.#first = false;
    if (line === "") {
      this.#dispatch(onEvent);
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      onEvent({ kind: "comment", text: line.slice(1).trim() });
      return;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") this.#append(value);
    else if (field === "event") this.#name = value;
    else if (!eventFields.has(field)) throw this.#limits.noEvents(line);
  }

  #append(value: string): void {
    this.#characters += value.length + 1;
    if (this.#characters > this.#limits.bytesMax) throw this.#limits.tooLong();
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #dispatch(onEvent: (event: SentEvent) => void): void {
    const [name, data] = [this.#name, this.#data];
    this.#name = "";
    this.#data = undefined;
    this.#characters = 0;
    if (data !== undefined) onEvent({ kind: "event", name, data });
  }
}
