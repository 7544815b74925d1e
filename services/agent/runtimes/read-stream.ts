import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { LineCutter } from "#shared/process/line-cutter.ts";
import type { RuntimeAnswer } from "./runtime-answer.ts";
import type { EmitEvents } from "./runtime.ts";

/** The longest line that a runtime may send. A whole tool call comes in one line, and its arguments may hold a file. */
export const runtimeLineBytesMax = 8 * 1024 * 1024;

/** Splits a body into its items as its pieces come. Items before a fault in a piece are still passed on. */
export interface Splitter<Item> {
  push(piece: Uint8Array, onItem: (item: Item) => void): void;
  end(onItem: (item: Item) => void): void;
}

interface StreamReading<Item> {
  readonly splitter: Splitter<Item>;
  /** Adds the answer events of an item. */
  readonly read: (item: Item, events: AnswerEvent[]) => void;
  /** Called after each piece, before its events are emitted. */
  readonly onPiece: () => void;
}

/** Reads an answer to its end. Emits one batch of events for each piece, also the events before a fault in it. */
export async function readStream<Item>(
  body: RuntimeAnswer,
  { splitter, read, onPiece }: StreamReading<Item>,
  emit: EmitEvents,
): Promise<void> {
  const emitItems = (split: (onItem: (item: Item) => void) => void): Promise<void> | undefined => {
    const events: AnswerEvent[] = [];
    let room: Promise<void> | undefined;
    try {
      split((item) => read(item, events));
    } finally {
      onPiece();
      if (events.length > 0) room = emit(events);
    }
    return room;
  };
  await body.read((piece) => emitItems((onItem) => splitter.push(piece, onItem)));
  await emitItems((onItem) => splitter.end(onItem));
}

/** An event of a stream, or a comment: a line by which a runtime only shows that it is alive. */
export type SentEvent =
  | { readonly kind: "event"; readonly name: string; readonly data: string }
  | { readonly kind: "comment"; readonly text: string };

const byteOrderMark = "\uFEFF";

/** The fields of the standard. `id` and `retry` have no meaning for an answer. */
const eventFields = new Set(["data", "event", "id", "retry"]);

/**
 * Splits a body of server-sent events into its events. Lines end as the standard allows: `\n`, `\r\n` or `\r`. The last
 * event may lack the empty line behind it. A body of another kind, such as a page of a proxy, is a fault, and so is an
 * event longer than `eventBytesMax`.
 */
export class SentEvents implements Splitter<SentEvent> {
  readonly #bytesMax: number;
  readonly #lines: LineCutter;
  #first = true;
  #name = "";
  #data: string | undefined;
  #characters = 0;

  constructor({ eventBytesMax = runtimeLineBytesMax } = {}) {
    this.#bytesMax = eventBytesMax;
    this.#lines = new LineCutter(eventBytesMax, () => tooLong("an event", eventBytesMax));
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
    else if (!eventFields.has(field)) throw noEvents(line);
  }

  #append(value: string): void {
    this.#characters += value.length + 1;
    if (this.#characters > this.#bytesMax) throw tooLong("an event", this.#bytesMax);
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

/** Splits a body of JSON lines into its values. Empty lines are skipped. */
export class JsonLines implements Splitter<unknown> {
  readonly #lines: LineCutter;

  constructor({ lineBytesMax = runtimeLineBytesMax } = {}) {
    this.#lines = new LineCutter(lineBytesMax, () => tooLong("a line", lineBytesMax));
  }

  push(piece: Uint8Array, onValue: (value: unknown) => void): void {
    this.#lines.push(piece, (line) => parseLine(line, onValue));
  }

  end(onValue: (value: unknown) => void): void {
    this.#lines.end((line) => parseLine(line, onValue));
  }
}

function parseLine(line: string, onValue: (value: unknown) => void): void {
  if (line.trim() === "") return;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // Drops the parser's own error: its message quotes a part of the line, which may be a user's answer.
    throw new Fault("upstream_error", {
      message: "The runtime sent a line that is not JSON.",
      internal: `not JSON, ${line.length} characters`,
    });
  }
  onValue(value);
}

function tooLong(what: "a line" | "an event", bytesMax: number): Fault {
  return new Fault("upstream_error", {
    message: `The runtime sent ${what} longer than ${bytesMax} bytes (runtimeLineBytesMax).`,
  });
}

function noEvents(line: string): Fault {
  const looksLike = line.trimStart().startsWith("<") ? "HTML" : line.trimStart().startsWith("{") ? "JSON" : "text";
  return new Fault("upstream_error", {
    message: "The runtime did not answer with server-sent events.",
    internal: `${looksLike} where server-sent events were asked for`,
  });
}
