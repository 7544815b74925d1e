/** Steps over the strings and numbers of JSON as bytes, for code that scans JSON without parsing it. */

export const space = 0x20;
export const quote = 0x22;
export const backslash = 0x5c;
export const newline = 0x0a;
export const comma = 0x2c;
export const colon = 0x3a;
export const openingBracket = 0x5b;
export const closingBracket = 0x5d;
export const openingBrace = 0x7b;
export const closingBrace = 0x7d;

/**
 * Bytes of a string that are read one by one before a search for its end. A search takes a while to begin, and pays off
 * only after these.
 */
const searchAfterBytes = 128;

/**
 * Returns the position of the closing quote of the string whose first byte is at `from`. Without a quote it returns the
 * length of all bytes.
 */
export function endOfText(bytes: Buffer, from: number): number {
  const { byteLength } = bytes;
  let place = from;
  let quoteAt = -1;
  while (place < byteLength) {
    for (let searchFrom = place + searchAfterBytes; place < searchFrom;) {
      const byte = bytes[place];
      if (byte === quote || byte === undefined) return Math.min(place, byteLength);
      if (byte === backslash) {
        place += 2;
        searchFrom = place + searchAfterBytes;
      } else place += 1;
    }
    if (quoteAt < place) quoteAt = indexIn(bytes, quote, { from: place, to: byteLength });
    place = indexIn(bytes, backslash, { from: place, to: quoteAt });
  }
  return byteLength;
}

/** Returns the first position of a byte within a range, or the range's end. */
function indexIn(bytes: Buffer, byte: number, { from, to }: { from: number; to: number }): number {
  const place = bytes.subarray(from, to).indexOf(byte);
  return place === -1 ? to : from + place;
}

export function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === newline || byte === 0x09 || byte === 0x0d;
}

export function startsNumber(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || byte === 0x2d);
}

/** Returns where the number ends whose first byte is at `from`. */
export function endOfNumber(bytes: Buffer, from: number): number {
  let place = from + 1;
  while (place < bytes.byteLength && isInNumber(bytes[place] ?? 0)) place += 1;
  return place;
}

function isInNumber(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e || (byte | 0x20) === 0x65;
}
