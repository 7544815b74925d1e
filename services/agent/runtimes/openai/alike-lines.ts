import { isUtf8 } from "node:buffer";
import type { WrittenTexts } from "#shared/answer/written-texts.ts";
import { ownBytes } from "#shared/process/own-bytes.ts";

/** The alike events at the beginning of some bytes. `end` is the offset where they end. */
export interface AlikeRun extends WrittenTexts {
  readonly end: number;
}

const [space, quote, backslash, asciiEnd] = [0x20, 0x22, 0x5c, 0x80] as const;

/**
 * Finds alike events in the bytes of a body, as `AlikeChunks` does in single events. An alike event begins and ends as
 * the learnt event, to the byte. JSON writes the text between unchanged. Alike events are not decoded, split or parsed.
 */
export class AlikeLines {
  readonly #begin: Uint8Array;
  readonly #end: Uint8Array;

  /**
   * `around` is the data of an event before and after its text. The body holds the event as one line, with an empty
   * line behind it.
   */
  constructor(around: { readonly begin: string; readonly end: string }) {
    this.#begin = ownBytes(`data: ${around.begin}`);
    this.#end = endBytesOf(around.end);
  }

  /**
   * Returns the alike events at the beginning of the bytes, or undefined if the first event is not alike. The bytes
   * begin where an event may begin.
   */
  runIn(bytes: Uint8Array): AlikeRun | undefined {
    const bounds: number[] = [];
    let end = 0;
    let isAscii = true;
    for (;;) {
      if (!holdsAt(bytes, end, this.#begin)) break;
      const from = end + this.#begin.length;
      let to = from;
      for (let byte = bytes[to]; isOfText(byte); byte = bytes[++to]) if (byte >= asciiEnd) isAscii = false;
      if (!holdsAt(bytes, to, this.#end)) break;
      if (to > from) bounds.push(from, to);
      end = to + this.#end.length;
    }
    if (end === 0 || !(isAscii || isUtf8(bytes.subarray(0, end)))) return undefined;
    return { bytes, bounds, end };
  }
}

let lastEnd: { readonly text: string; readonly bytes: Uint8Array } | undefined;

/**
 * Returns the same bytes for all answers whose events end alike, as the answers of one server do. All answers then
 * compare against the same memory.
 */
function endBytesOf(text: string): Uint8Array {
  if (lastEnd?.text !== text) lastEnd = { text, bytes: ownBytes(`${text}\n\n`) };
  return lastEnd.bytes;
}

/** True if JSON writes this byte unchanged, as it does all bytes beyond ASCII. */
function isOfText(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= space && byte !== quote && byte !== backslash;
}

function holdsAt(bytes: Uint8Array, at: number, sought: Uint8Array): boolean {
  if (at + sought.length > bytes.length) return false;
  for (let place = 0; place < sought.length; place += 1) if (bytes[at + place] !== sought[place]) return false;
  return true;
}
