import { isBigInteger } from "#shared/process/exact-json.ts";

/** Characters of the longest number that is read; no library writes one that long. */
export const numberCharactersMax = 40;

/** Characters up to which a number without an exponent is the same to every reader. */
const safeCharactersMax = 15;

/**
 * Judges whether a number survives being read and written again. `big` is an integer with too many digits for a number:
 * only `parseExactly` keeps them all. `unfit` is a number that is too long, or that would become infinite or zero. A
 * decimal may be rounded to the nearest number, as every reader of JSON does.
 */
export function judgeNumber(bytes: Buffer, from: number, to: number): "exact" | "big" | "unfit" {
  const characters = to - from;
  if (characters > numberCharactersMax) return "unfit";
  if (characters <= safeCharactersMax && !hasExponent(bytes, from, to)) return "exact";
  const literal = bytes.toString("latin1", from, to);
  const value = Number(literal);
  // A literal that is no number is not JSON either; the parser refuses it later.
  if (Number.isNaN(value)) return "exact";
  if (!Number.isFinite(value)) return "unfit";
  if (value === 0) return /^[^e]*[1-9]/i.test(literal) ? "unfit" : "exact";
  return isBigInteger(literal, value) ? "big" : "exact";
}

function hasExponent(bytes: Buffer, from: number, to: number): boolean {
  for (let place = from; place < to; place += 1) if (((bytes[place] ?? 0) | 0x20) === 0x65) return true;
  return false;
}
