import { isBigInteger } from "#shared/process/exact-json.ts";

/** The longest number that is read; as written by any library, none takes as much. */
export const numberCharactersMax = 40;

/** An integer of so many digits is the same number to every reader. */
const safeCharactersMax = 15;

/**
 * What becomes of a number that is read and written again. An integer with too many digits keeps them all if it is read
 * with care; nothing may become infinite, or zero, and nothing is endless. A decimal may be rounded to the nearest there
 * is, as every reader of JSON does.
 */
export function judgeNumber(bytes: Buffer, from: number, to: number): "exact" | "big" | "unfit" {
  const characters = to - from;
  if (characters > numberCharactersMax) return "unfit";
  if (characters <= safeCharactersMax && !hasExponent(bytes, from, to)) return "exact";
  const literal = bytes.toString("latin1", from, to);
  const value = Number(literal);
  // What is no number at all is not JSON either, and will be refused as that.
  if (Number.isNaN(value)) return "exact";
  if (!Number.isFinite(value)) return "unfit";
  if (value === 0) return /^[^e]*[1-9]/i.test(literal) ? "unfit" : "exact";
  return isBigInteger(literal, value) ? "big" : "exact";
}

function hasExponent(bytes: Buffer, from: number, to: number): boolean {
  for (let place = from; place < to; place += 1) if (((bytes[place] ?? 0) | 0x20) === 0x65) return true;
  return false;
}
