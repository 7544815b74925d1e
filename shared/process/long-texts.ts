import { isUtf8 } from "node:buffer";

/** Texts of at least this size count as long: parsing and writing them costs more than stepping over them. */
const longTextBytesMin = 2_048;
/**
 * Bytes of a stride. `ends` reads the first and the last stride: each holds more than `endCharacters`, even when
 * escaped.
 */
const strideBytes = 4_096;

/** Characters of each end of a long text that `ends` returns without reading all of it. */
export const endCharacters = 512;

/** Replaces each long text in the shortened JSON. */
export const standIn = "<a long text>";
const writtenStandIn = Buffer.from(standIn);
const quotedStandIn = `"${standIn}"`;
/** `standIn` as the value of a field. Within a text a backslash would precede the quotation mark. */
const valueStandIn = `:${quotedStandIn}`;

/** JSON without its long texts, and these texts in their order. */
export interface ShortJson {
  readonly json: Buffer;
  readonly texts: readonly LongText[];
}

/** A valid JSON text that was not parsed: its written form and its length in characters. */
export class LongText {
  /** The written form between the quotation marks. */
  readonly written: Buffer;
  readonly length: number;
  readonly #quoted: Buffer;
  readonly #steps: Steps;

  constructor(quoted: Buffer, steps: Steps) {
    this.written = quoted.subarray(1, -1);
    this.length = steps.characters;
    this.#quoted = quoted;
    this.#steps = steps;
  }

  /** Decodes the whole text. */
  read(): string {
    if (!this.written.includes(backslash)) return this.written.toString("utf8");
    return String(JSON.parse(this.#quoted.toString("utf8")));
  }

  /** Returns the first and the last `endCharacters` of the text, or the whole of a shorter text. */
  ends(): string {
    if (this.length <= 2 * endCharacters) return this.read();
    const { firstEnd, lastFrom } = this.#steps;
    const first = readText(this.written.subarray(0, firstEnd));
    const last = readText(this.written.subarray(lastFrom));
    return first.slice(0, endCharacters) + last.slice(-endCharacters);
  }
}

/**
 * Takes the long texts out of JSON. The rest is parsed as usual. The long texts, which are nearly all of the bytes, are
 * scanned once and passed on unchanged. Returns undefined when there are none, when a text is not valid JSON, or when
 * one holds half a surrogate pair: parsing the whole body then reports the error. With `fields`, only the values of
 * these fields are taken out, where only the colon stands between name and value.
 */
export function takeOutLongTexts(bytes: Buffer, fields?: readonly string[]): ShortJson | undefined {
  if (!isUtf8(bytes)) return undefined;
  const { byteLength, buffer } = bytes;
  const steppable = { bytes, words: new Int32Array(buffer, 0, buffer.byteLength >> 2) };
  const pieces: Buffer[] = [];
  const texts: LongText[] = [];
  let taken = 0;
  for (let place = 0; place < byteLength; place += 1) {
    if (bytes[place] !== quote) continue;
    const from = place + 1;
    const steps = stepThrough(steppable, from);
    if (steps === undefined) return undefined;
    place = from + steps.bytes;
    if (steps.bytes < longTextBytesMin) continue;
    if (fields !== undefined && !fields.some((field) => isValueOf(field, { bytes, from }))) continue;
    texts.push(new LongText(bytes.subarray(from - 1, place + 1), steps));
    pieces.push(bytes.subarray(taken, from), writtenStandIn);
    taken = place;
  }
  if (texts.length === 0) return undefined;
  pieces.push(bytes.subarray(taken));
  return { json: Buffer.concat(pieces), texts };
}

/** Returns true if the text that begins at `from` is the value of this field. */
function isValueOf(field: string, { bytes, from }: { bytes: Buffer; from: number }): boolean {
  const before = `"${field}":"`;
  return bytes.toString("latin1", Math.max(0, from - before.length), from) === before;
}

/**
 * Puts the long texts back as values of fields, in the order in which they were taken out. Returns undefined unless the
 * JSON has exactly as many places.
 */
export function putInLongTexts(json: string, texts: readonly LongText[]): Buffer | undefined {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const { written } of texts) {
    const place = json.indexOf(valueStandIn, from);
    if (place === -1) return undefined;
    const textFrom = place + 2;
    pieces.push(Buffer.from(json.slice(from, textFrom)), written);
    from = textFrom + standIn.length;
  }
  if (json.includes(valueStandIn, from)) return undefined;
  pieces.push(Buffer.from(json.slice(from)));
  return Buffer.concat(pieces);
}

/** Counts the texts of this JSON that equal `standIn`. */
export function placesOfLongTexts(json: string): number {
  return json.split(quotedStandIn).length - 1;
}

/** The result of scanning one text. */
interface Steps {
  readonly bytes: number;
  /** Length in UTF-16 code units, as strings count. */
  readonly characters: number;
  /**
   * End of the first stride and start of the last full one. Either may split an unescaped character of several bytes.
   */
  readonly firstEnd: number;
  readonly lastFrom: number;
}

const quote = 0x22;
const backslash = 0x5c;

/** Characters that each byte adds to its text. Quotation mark, backslash and forbidden bytes are `special`. */
const special = 3;
const added = new Uint8Array(256);
for (let byte = 0; byte < added.length; byte += 1) added[byte] = charactersAt(byte);

function charactersAt(byte: number): number {
  if (byte < 0x20 || byte === quote || byte === backslash) return special;
  if (byte < 0x80) return 1;
  // Only the first byte of a UTF-8 sequence counts. A sequence of four bytes is two UTF-16 code units.
  return byte < 0xc0 ? 0 : byte < 0xf0 ? 1 : 2;
}

/**
 * Scans to the closing quotation mark of the text that begins at `from`. Returns undefined when the text is invalid.
 */
function stepThrough({ bytes, words }: Steppable, from: number): Steps | undefined {
  const { byteLength, byteOffset } = bytes;
  let place = from;
  let characters = 0;
  let firstEnd = 0;
  let lastFrom = from;
  for (let strideFrom = from; place < byteLength; strideFrom = place) {
    const strideEnd = Math.min(strideFrom + strideBytes, byteLength);
    while (place < strideEnd) {
      const at = byteOffset + place;
      if ((at & 3) === 0 && place + 4 <= strideEnd) {
        const four = words[at >> 2] ?? 0;
        if (!holdsSpecial(four)) {
          characters += (four & 0x80808080) === 0 ? 4 : charactersOf(four);
          place += 4;
          continue;
        }
      }
      const byte = bytes[place] ?? 0;
      const more = added[byte] ?? special;
      if (more !== special) {
        characters += more;
        place += 1;
      } else if (byte === backslash) {
        const escape = escapeAt(bytes, place + 1);
        if (escape === 0) return undefined;
        characters += escape > 6 ? 2 : 1;
        place += escape;
      } else if (byte === quote) {
        return { bytes: place - from, characters, firstEnd: firstEnd || place - from, lastFrom: lastFrom - from };
      } else return undefined;
    }
    firstEnd ||= place - from;
    lastFrom = strideFrom;
  }
  return undefined;
}

/** The bytes, and a view of them as 32-bit words. */
interface Steppable {
  readonly bytes: Buffer;
  readonly words: Int32Array;
}

/**
 * Returns true if one of four bytes is below a space, a quotation mark or a backslash. The subtraction makes a zero
 * byte borrow from its highest bit.
 */
function holdsSpecial(four: number): boolean {
  const quotes = four ^ 0x22222222;
  const backslashes = four ^ 0x5c5c5c5c;
  const less = (four - 0x20202020) & ~four;
  return ((less | ((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes)) & 0x80808080) !== 0;
}

function charactersOf(four: number): number {
  const low = (added[four & 0xff] ?? 0) + (added[(four >> 8) & 0xff] ?? 0);
  return low + (added[(four >> 16) & 0xff] ?? 0) + (added[four >>> 24] ?? 0);
}

/** Characters that a backslash alone escapes. */
const escaped = new Uint8Array(256);
for (const character of '"\\/bfnrt') escaped[character.charCodeAt(0)] = 1;

/**
 * Returns the bytes of the escape after a backslash, with both halves of a surrogate pair. 0 when the escape is
 * invalid.
 */
function escapeAt(bytes: Buffer, place: number): 0 | 2 | 6 | 12 {
  const kind = bytes[place] ?? 0;
  if (escaped[kind] === 1) return 2;
  if (kind !== letterU) return 0;
  const unit = unitAt(bytes, place + 1);
  if (unit === undefined || isLowHalf(unit)) return 0;
  if (!isHighHalf(unit)) return 6;
  if (bytes[place + 5] !== backslash || bytes[place + 6] !== letterU) return 0;
  const other = unitAt(bytes, place + 7);
  return other !== undefined && isLowHalf(other) ? 12 : 0;
}

const letterU = 0x75;

function isHighHalf(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLowHalf(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

const notHex = 16;
const hexDigits = new Uint8Array(256).fill(notHex);
for (const digits of ["0123456789abcdef", "0123456789ABCDEF"])
  for (let value = 0; value < digits.length; value += 1) hexDigits[digits.charCodeAt(value)] = value;

/** Reads four hexadecimal digits. */
function unitAt(bytes: Buffer, place: number): number | undefined {
  let unit = 0;
  for (let at = place; at < place + 4; at += 1) {
    const digit = hexDigits[bytes[at] ?? 0] ?? notHex;
    if (digit === notHex) return undefined;
    unit = unit * 16 + digit;
  }
  return unit;
}

function readText(written: Buffer): string {
  return String(JSON.parse(`"${written.toString("utf8")}"`));
}
