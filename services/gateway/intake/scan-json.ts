import { Fault } from "#shared/fault/fault.ts";
import { judgeNumber } from "./exact-number.ts";
import {
  closingBrace,
  closingBracket,
  colon,
  comma,
  endOfNumber,
  endOfText,
  openingBrace,
  openingBracket,
  quote,
  startsNumber,
} from "./json-text.ts";

export const jsonDepthMax = 64;
/** Values in one request: each costs far more to check than its bytes cost to send. */
export const jsonValuesMax = 49_152;
/** Keys of one object: an object with more is a table and no request, and far slower to read. */
export const jsonKeysMax = 2_048;

/** Marks the bytes that begin a token here, by their values. The scan passes over all others. */
const marks = new Uint8Array(256);
for (const mark of [quote, comma, colon, openingBracket, closingBracket, openingBrace, closingBrace]) marks[mark] = 1;
for (let byte = 0; byte < marks.length; byte += 1) if (startsNumber(byte)) marks[byte] = 1;

/** Facts that the bytes of JSON show and its parsed values do not. */
export interface ScannedJson {
  /** Number of keys of all objects together; a duplicate key counts each time. */
  readonly keys: number;
  /** Position of the first number that cannot be read. */
  readonly unfitAt: number | undefined;
  /** True if the JSON has an integer that keeps its digits only with `parseExactly`. */
  readonly hasBigInteger: boolean;
}

/**
 * Bounds the depth of JSON and the number of its values before it is parsed. A megabyte of brackets or of tiny values
 * would block this process and all its other requests.
 */
export function scanJson(bytes: Buffer): ScannedJson {
  /** Number of keys of each open object, by its depth. */
  const keysAt = new Uint32Array(jsonDepthMax + 1);
  let depth = 0;
  let values = 1;
  let keys = 0;
  let unfitAt: number | undefined;
  let hasBigInteger = false;
  for (let place = 0; place < bytes.byteLength; place += 1) {
    const byte = bytes[place];
    if (byte === undefined || marks[byte] === 0) continue;
    if (byte === quote) place = endOfText(bytes, place + 1);
    else if (byte === closingBracket || byte === closingBrace) depth -= 1;
    else if (byte === comma) values += 1;
    else if (byte === openingBracket || byte === openingBrace) {
      values += 1;
      depth += 1;
      if (depth > jsonDepthMax) throw tooDeep();
      keysAt[depth] = 0;
    } else if (byte === colon) {
      keys += 1;
      keysAt[depth] = (keysAt[depth] ?? 0) + 1;
      if ((keysAt[depth] ?? 0) > jsonKeysMax) throw tooMany(`${jsonKeysMax} keys in one object (jsonKeysMax)`);
    } else {
      const end = endOfNumber(bytes, place);
      const verdict = judgeNumber(bytes, place, end);
      if (verdict === "big") hasBigInteger = true;
      else if (verdict === "unfit") unfitAt ??= place;
      place = end - 1;
    }
    if (values > jsonValuesMax) throw tooMany(`${jsonValuesMax} values (jsonValuesMax)`);
  }
  return { keys, unfitAt, hasBigInteger };
}

function tooDeep(): Fault {
  return new Fault("invalid_json", {
    message: `The request's JSON is nested more than ${jsonDepthMax} levels deep (jsonDepthMax).`,
  });
}

function tooMany(what: string): Fault {
  return new Fault("invalid_json", { message: `The request's JSON holds more than ${what}.` });
}
