import { Fault } from "#shared/fault/fault.ts";

export const jsonDepthMax = 64;
/** Values in one request: each costs far more to check than its bytes cost to send. */
export const jsonValuesMax = 49_152;
/** Keys of one object: an object with more is a table and no request, and far slower to read. */
export const jsonKeysMax = 2_048;
/** Characters of the longest number that is read; no library writes one that long. */
export const numberCharactersMax = 40;

/** A path in JSON: keys of objects and indexes of arrays. */
export type JsonPath = readonly (string | number)[];

/** Facts that the text of JSON shows and its parsed values do not. */
export interface ScannedJson {
  /** Number of keys of all objects together; a duplicate key counts each time. */
  readonly keys: number;
  /** Position of the first number that would be read as infinite or zero, or that is too long. */
  readonly unfitAt: number | undefined;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openingBracket = 0x5b;
const backslash = 0x5c;
const closingBracket = 0x5d;
const openingBrace = 0x7b;
const closingBrace = 0x7d;

/**
 * Bounds the depth of JSON and the number of its values before it is parsed. A megabyte of brackets or of tiny values
 * would block this thread and all its other requests.
 */
export function scanJson(text: string): ScannedJson {
  /** Number of keys of each open object, by its depth. */
  const keysAt = new Uint32Array(jsonDepthMax + 1);
  let depth = 0;
  let values = 1;
  let keys = 0;
  let unfitAt: number | undefined;
  for (let place = 0; place < text.length; place += 1) {
    const character = text.charCodeAt(place);
    if (character === quote) place = endOfString(text, place + 1);
    else if (character === closingBracket || character === closingBrace) depth -= 1;
    else if (character === comma) values += 1;
    else if (character === openingBracket || character === openingBrace) {
      values += 1;
      depth += 1;
      if (depth > jsonDepthMax) throw tooDeep();
      keysAt[depth] = 0;
    } else if (character === colon) {
      keys += 1;
      keysAt[depth] = (keysAt[depth] ?? 0) + 1;
      if ((keysAt[depth] ?? 0) > jsonKeysMax) throw tooMany(`${jsonKeysMax} keys in one object (jsonKeysMax)`);
    } else if (startsNumber(character)) {
      const end = endOfNumber(text, place);
      if (unfitAt === undefined && isUnfit(text, place, end)) unfitAt = place;
      place = end - 1;
    }
    if (values > jsonValuesMax) throw tooMany(`${jsonValuesMax} values (jsonValuesMax)`);
  }
  return { keys, unfitAt };
}

/** Returns the path to the first duplicate key, or to the number at `numberAt`. The text must be valid JSON. */
export function locateInJson(text: string, what: "duplicate key" | { readonly numberAt: number }): JsonPath {
  const open: OpenValue[] = [];
  for (let place = 0; place < text.length; place += 1) {
    const holder = open.at(-1);
    const character = text.charCodeAt(place);
    if (character === openingBrace) open.push({ keys: new Set(), step: "", awaitsKey: true });
    else if (character === openingBracket) open.push({ keys: undefined, step: 0, awaitsKey: false });
    else if (character === closingBrace || character === closingBracket) open.pop();
    else if (character === comma && holder !== undefined) {
      holder.awaitsKey = holder.keys !== undefined;
      if (typeof holder.step === "number") holder.step += 1;
    } else if (character === quote) {
      const end = endOfString(text, place + 1);
      const isDuplicate = holder?.awaitsKey === true && enterKey(holder, text.slice(place, end + 1));
      if (isDuplicate && what === "duplicate key") break;
      place = end;
    } else if (startsNumber(character)) {
      if (typeof what === "object" && what.numberAt === place) break;
      place = endOfNumber(text, place) - 1;
    }
  }
  return open.map(({ step }) => step);
}

interface OpenValue {
  /** Keys of an object so far; undefined for an array. */
  readonly keys: Set<string> | undefined;
  step: string | number;
  awaitsKey: boolean;
}

/** Moves to the value of a key. Returns true if the object already had that key. */
function enterKey(holder: OpenValue, quoted: string): boolean {
  const key = String(JSON.parse(quoted));
  const isDuplicate = holder.keys?.has(key) === true;
  holder.keys?.add(key);
  holder.step = key;
  holder.awaitsKey = false;
  return isDuplicate;
}

/** Returns the position of the closing quote of the string that begins at `from`, or the length of the text. */
function endOfString(text: string, from: number): number {
  for (let place = text.indexOf('"', from); place !== -1; place = text.indexOf('"', place + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(place - backslashes - 1) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return place;
  }
  return text.length;
}

function startsNumber(character: number): boolean {
  return (character >= 0x30 && character <= 0x39) || character === 0x2d;
}

/** Returns where the number ends that begins at `from`. */
function endOfNumber(text: string, from: number): number {
  let place = from + 1;
  while (place < text.length && isInNumber(text.charCodeAt(place))) place += 1;
  return place;
}

function isInNumber(character: number): boolean {
  return startsNumber(character) || character === 0x2b || character === 0x2e || (character | 0x20) === 0x65;
}

/** Characters up to which a number without an exponent is fit. */
const safeCharactersMax = 15;

/**
 * Returns true for a number that is too long, or that would become infinite or zero. Other numbers may be rounded, as
 * every reader of JSON rounds them.
 */
function isUnfit(text: string, from: number, to: number): boolean {
  if (to - from > numberCharactersMax) return true;
  const literal = text.slice(from, to);
  if (to - from <= safeCharactersMax && !/e/i.test(literal)) return false;
  const value = Number(literal);
  if (value === 0) return /^[^e]*[1-9]/i.test(literal);
  // A literal that is no number is not JSON either; the parser refuses it later.
  return value === Infinity || value === -Infinity;
}

function tooDeep(): Fault {
  return new Fault("invalid_json", {
    message: `The request's JSON is nested more than ${jsonDepthMax} levels deep (jsonDepthMax).`,
  });
}

function tooMany(what: string): Fault {
  return new Fault("invalid_json", { message: `The request's JSON holds more than ${what}.` });
}
