import { isUtf8 } from "node:buffer";
import type { WrittenTexts } from "#shared/answer/written-texts.ts";
import { ownBytes } from "#shared/process/own-bytes.ts";

/** The events at the beginning of some bytes that are alike, and where they end. */
export interface AlikeRun extends WrittenTexts {
  readonly end: number;
}

const [space, quote, backslash, asciiEnd] = [0x20, 0x22, 0x5c, 0x80] as const;

/**
 * Finds in the bytes of a body what `AlikeChunks` finds in its events: those that begin and end as one that was learnt, to
 * the byte, and have a text between that JSON writes as it is. So nothing of them is decoded, cut off or parsed.
 */
export class AlikeLines {
  readonly #begin: Uint8Array;
  readonly #end: Uint8Array;

  /** What stands around the text in the data of an event, which the body holds in one line with an empty one behind it. */
  constructor(around: { readonly begin: string; readonly end: string }) {
    this.#begin = ownBytes(`data: ${around.begin}`);
    this.#end = endBytesOf(around.end);
  }

  /** Those that the bytes begin with, which begin where an event may; nothing where the first is not alike. */
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

/** The same bytes for all answers whose events end alike, as those of one server do: what all look at is near at hand. */
function endBytesOf(text: string): Uint8Array {
  if (lastEnd?.text !== text) lastEnd = { text, bytes: ownBytes(`${text}\n\n`) };
  return lastEnd.bytes;
}

/** Whether JSON writes it as it is, as it does all characters beyond ASCII. */
function isOfText(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= space && byte !== quote && byte !== backslash;
}

function holdsAt(bytes: Uint8Array, at: number, sought: Uint8Array): boolean {
  if (at + sought.length > bytes.length) return false;
  for (let place = 0; place < sought.length; place += 1) if (bytes[at + place] !== sought[place]) return false;
  return true;
}
