import { openRecord, piecesOf, recordTextMax, type DataRecord } from "#shared/protocol/answer-events.ts";

/** A record that waits, or a piece of one that is longer than `recordTextMax`. */
interface Pending {
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
export class PendingRecords {
  #waiting: Pending[] = [];
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
    const last = joining ? this.#waiting.at(-1) : undefined;
    if (
      last === undefined ||
      (head !== "t" && head !== "r") ||
      last.head !== head ||
      last.text.length + text.length > recordTextMax
    ) {
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
    for (const pending of this.#waiting) {
      const bytes = sizeOf(pending);
      if (bytes > room) {
        const isText = pending.head === "t" || pending.head === "r";
        if (isText) written += this.#cut(pending, room);
        if (isText || taken > 0 || bytes > creditBytes) break;
      }
      written += writtenOf(pending.head, pending.text);
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

  #add(head: Pending["head"], text: string): void {
    const pending = { head, text, textBytes: Buffer.byteLength(text) };
    this.#waiting.push(pending);
    this.#bytes += sizeOf(pending);
  }

  /** Takes the beginning of a text as a record of its own, in at most this many bytes. */
  #cut(pending: Pending, room: number): string {
    if (room <= openBytesMax) return "";
    const { read, written } = encoder.encodeInto(pending.text, new Uint8Array(room - openBytesMax));
    if (read === 0) return "";
    const begin = writtenOf(pending.head, pending.text.slice(0, read));
    this.#bytes -= sizeOf(pending);
    pending.text = pending.text.slice(read);
    pending.textBytes -= written;
    this.#bytes += sizeOf(pending);
    return begin;
  }
}

function writtenOf(head: Pending["head"], text: string): string {
  return head === undefined ? text : openRecord({ head, text }) + text;
}

function sizeOf({ head, text, textBytes }: Pending): number {
  if (head === undefined) return textBytes;
  const { length } = text;
  const digits = length < 10 ? 1 : length < 100 ? 2 : length < 1_000 ? 3 : 4;
  return 2 + digits + textBytes;
}
