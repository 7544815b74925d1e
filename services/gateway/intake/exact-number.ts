/** The longest number that is read; as written by any library, none takes as much. */
export const numberCharactersMax = 40;

/** An integer of so many digits is the same number to every reader. */
const safeCharactersMax = 15;

/**
 * Whether a number stays what it is when it is read and written again: an integer keeps every digit, and nothing becomes
 * infinite, or zero. A decimal may be rounded to the nearest there is, as every reader of JSON does.
 */
export function isExactNumber(bytes: Buffer, from: number, to: number): boolean {
  const characters = to - from;
  if (characters > numberCharactersMax) return false;
  if (characters <= safeCharactersMax && !hasExponent(bytes, from, to)) return true;
  const literal = bytes.toString("latin1", from, to);
  const value = Number(literal);
  // What is no number at all is not JSON either, and will be refused as that.
  if (Number.isNaN(value)) return true;
  if (!Number.isFinite(value)) return false;
  if (value === 0) return !/^[^e]*[1-9]/i.test(literal);
  return String(value) === literal || !/^-?\d+$/.test(literal) || BigInt(literal) === BigInt(value);
}

function hasExponent(bytes: Buffer, from: number, to: number): boolean {
  for (let place = from; place < to; place += 1) if (((bytes[place] ?? 0) | 0x20) === 0x65) return true;
  return false;
}
