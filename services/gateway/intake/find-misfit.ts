import {
  backslash,
  closingBrace,
  closingBracket,
  colon,
  comma,
  endOfNumber,
  isBlank,
  openingBrace,
  openingBracket,
  quote,
  space,
  startsNumber,
} from "./json-text.ts";

type Awaited = "value" | "value or end" | "key" | "key or end" | "colon" | "comma or end";

const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const escaped: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));
const words: ReadonlySet<string> = new Set(["true", "false", "null"]);
const marks: ReadonlySet<number> = new Set([comma, colon, openingBracket, closingBracket, openingBrace, closingBrace]);

/** Returns the position of the first syntax error, or the end of bytes that break off. */
export function findMisfit(bytes: Buffer): number {
  const open: number[] = [];
  let awaited: Awaited = "value";
  for (let place = 0; place < bytes.byteLength;) {
    const byte = bytes[place] ?? 0;
    if (isBlank(byte)) {
      place += 1;
      continue;
    }
    const next = after(awaited, { byte, open });
    if (next === undefined) return place;
    awaited = next;
    const { end, fits } = token(bytes, place);
    if (!fits) return end;
    place = end;
  }
  return bytes.byteLength;
}

/**
 * Returns what the grammar awaits after a token that begins with this byte; undefined when no such token can stand
 * here.
 */
function after(awaited: Awaited, { byte, open }: { byte: number; open: number[] }): Awaited | undefined {
  const inObject = open.at(-1) === openingBrace;
  if (awaited === "colon") return byte === colon ? "value" : undefined;
  if (byte === closingBrace || byte === closingBracket) {
    const mayEnd = awaited === "comma or end" || awaited === (inObject ? "key or end" : "value or end");
    if (!mayEnd || open.pop() !== byte - 2) return undefined;
    return "comma or end";
  }
  if (awaited === "comma or end") {
    if (byte !== comma || open.length === 0) return undefined;
    return inObject ? "key" : "value";
  }
  if (awaited === "key" || awaited === "key or end") return byte === quote ? "colon" : undefined;
  if (byte === comma || byte === colon) return undefined;
  if (byte !== openingBrace && byte !== openingBracket) return "comma or end";
  open.push(byte);
  return byte === openingBrace ? "key or end" : "value or end";
}

interface Token {
  /**
   * Where a valid token ends; for an invalid one, the position of the error. That is the end of all bytes when the
   * token only breaks off there.
   */
  readonly end: number;
  readonly fits: boolean;
}

function token(bytes: Buffer, from: number): Token {
  const byte = bytes[from] ?? 0;
  if (byte === quote) return text(bytes, from + 1);
  if (marks.has(byte)) return { end: from + 1, fits: true };
  const end = startsNumber(byte) ? endOfNumber(bytes, from) : endOfWord(bytes, from);
  const fits = startsNumber(byte)
    ? numberPattern.test(bytes.toString("latin1", from, end))
    : words.has(bytes.toString("latin1", from, end));
  return { end: fits || end === bytes.byteLength ? end : from, fits };
}

function endOfWord(bytes: Buffer, from: number): number {
  let place = from;
  while (isLetter(bytes[place])) place += 1;
  return place;
}

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x61 && byte <= 0x7a;
}

function text(bytes: Buffer, from: number): Token {
  let place = from;
  while (place < bytes.byteLength) {
    const byte = bytes[place] ?? 0;
    if (byte === quote) return { end: place + 1, fits: true };
    if (byte < space) return { end: place, fits: false };
    const end = byte === backslash ? endOfEscape(bytes, place) : place + 1;
    if (end === undefined) return { end: place, fits: false };
    place = end;
  }
  return { end: place, fits: false };
}

function endOfEscape(bytes: Buffer, from: number): number | undefined {
  const kind = bytes[from + 1];
  if (kind === undefined) return bytes.byteLength;
  if (kind !== 0x75) return escaped.has(kind) ? from + 2 : undefined;
  const end = Math.min(from + 6, bytes.byteLength);
  return /^[0-9a-f]*$/i.test(bytes.toString("latin1", from + 2, end)) ? end : undefined;
}
