import { Fault } from "#shared/fault/fault.ts";
import { runtimeLineBytesMax } from "./json-lines.ts";

/** An event of a stream, or a comment: a line by which a runtime only says that it is still there. */
export type SentEvent =
  | { readonly kind: "event"; readonly name: string; readonly data: string }
  | { readonly kind: "comment"; readonly text: string };

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const byteOrderMark = "\uFEFF";

/** The fields of the standard, of which `id` and `retry` mean nothing for an answer. */
const fields = new Set(["data", "event", "id", "retry"]);

/**
 * Splits a body of server-sent events into its events, one batch for each piece that was read; the batch is empty when
 * a piece completes none. Lines end as the standard allows, `\n`, `\r\n` or `\r`; they are split as bytes and decoded
 * whole, so a character that spans two pieces stays whole. The last event may lack the empty line behind it.
 *
 * A body that is something else, such as a page of a proxy's, is a fault; so is an event longer than `eventBytesMax`,
 * and no more than that is ever held. What came before is yielded before the fault is thrown.
 */
export async function* serverSentEvents(
  pieces: AsyncIterable<Uint8Array>,
  options?: { eventBytesMax: number },
): AsyncGenerator<readonly SentEvent[]> {
  const lines = new LineSplitter(options?.eventBytesMax ?? runtimeLineBytesMax);
  const events = new EventReader(options?.eventBytesMax ?? runtimeLineBytesMax);
  for await (const piece of pieces) {
    const batch: SentEvent[] = [];
    try {
      for (const line of lines.push(piece)) batch.push(...events.push(line));
    } finally {
      yield batch;
    }
  }
  yield [...lines.end(), ""].flatMap((line) => events.push(line));
}

class LineSplitter {
  readonly #bytesMax: number;
  #unfinished: Uint8Array[] = [];
  #unfinishedBytes = 0;
  /** Whether the last byte was a carriage return: a line feed after it ends no second line. */
  #returned = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  *push(piece: Uint8Array): Generator<string> {
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at];
      if (byte === lineFeed && this.#returned) from = at + 1;
      else if (byte === lineFeed || byte === carriageReturn) {
        yield this.#take(piece.subarray(from, at));
        from = at + 1;
      }
      this.#returned = byte === carriageReturn;
    }
    if (from < piece.length) this.#keep(piece.subarray(from));
  }

  end(): string[] {
    return this.#unfinishedBytes === 0 ? [] : [this.#take(new Uint8Array())];
  }

  #keep(bytes: Uint8Array): void {
    this.#unfinishedBytes += bytes.length;
    if (this.#unfinishedBytes > this.#bytesMax) throw tooLong(this.#bytesMax);
    this.#unfinished.push(bytes);
  }

  #take(end: Uint8Array): string {
    this.#keep(end);
    const line = Buffer.concat(this.#unfinished).toString();
    this.#unfinished = [];
    this.#unfinishedBytes = 0;
    return line;
  }
}

class EventReader {
  readonly #bytesMax: number;
  #name = "";
  #data: string[] = [];
  #characters = 0;
  #first = true;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  push(bytes: string): SentEvent[] {
    const line = this.#first && bytes.startsWith(byteOrderMark) ? bytes.slice(1) : bytes;
    this.#first = false;
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return [{ kind: "comment", text: line.slice(1).trim() }];
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (!fields.has(field)) throw noEvents(line);
    if (field === "event") this.#name = value;
    if (field === "data") this.#append(value);
    return [];
  }

  #append(value: string): void {
    this.#characters += value.length + 1;
    if (this.#characters > this.#bytesMax) throw tooLong(this.#bytesMax);
    this.#data.push(value);
  }

  #dispatch(): SentEvent[] {
    const [name, data] = [this.#name, this.#data];
    this.#name = "";
    this.#data = [];
    this.#characters = 0;
    return data.length === 0 ? [] : [{ kind: "event", name, data: data.join("\n") }];
  }
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
