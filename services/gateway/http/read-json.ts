import { isUtf8 } from "node:buffer";
import { Fault } from "#shared/fault/fault.ts";
import type { JsonPath } from "#shared/protocol/frame-payload.ts";
import { paramOf } from "./read-shape.ts";

/**
 * Reads a request's body as a JSON object that means the same to every later reader. Refuses JSON that could not be
 * passed on unchanged, and tells the client where the problem is.
 */
export function readJsonObject(bytes: Buffer | undefined): Record<string, unknown> {
  if (bytes === undefined || bytes.byteLength === 0) throw brokenJson("The request has no body; send a JSON object.");
  const text = textOf(bytes);
  const scanned = scanJson(text);
  const value = parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Fault("invalid_type", { message: "The request's body must be a JSON object." });
  }
  assertOneMeaning(value, { text, scanned });
  return value as Record<string, unknown>;
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) {
    throw brokenJson(`The request's body is not UTF-8; what is not begins at byte ${endOfUtf8(bytes) + 1}.`);
  }
  const text = bytes.toString("utf8");
  if (text.startsWith("\ufeff")) {
    throw brokenJson("The request's body begins with a byte order mark; send the JSON without it.");
  }
  return text;
}

/** Returns where bytes stop being UTF-8. The strides become shorter, because `isUtf8` only judges whole pieces. */
function endOfUtf8(bytes: Buffer): number {
  let from = 0;
  for (const stride of [65_536, 256, 1]) {
    for (;;) {
      let to = Math.min(from + stride, bytes.byteLength);
      while (to < bytes.byteLength && to < from + stride + 4 && isContinuation(bytes[to])) to += 1;
      if (to === from || !isUtf8(bytes.subarray(from, to))) break;
      from = to;
    }
  }
  return from;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const place = placeOf(error, text);
    if (place === undefined) throw brokenJson("The request's body is not valid JSON.");
    if (place >= text.length) throw brokenJson("The request's body is not valid JSON: it ends too early.");
    const lines = text.slice(0, place).split("\n");
    const column = (lines.at(-1)?.length ?? 0) + 1;
    throw brokenJson(`The request's body is not valid JSON from line ${lines.length}, column ${column} on.`);
  }
}

/** Longest text in which an error without a position is searched for: the search parses the text several times. */
const searchedCharactersMax = 64 * 1024;

/**
 * Returns the position of a syntax error as V8 reports it, or the length of a text that ends too early. V8 reports no
 * position for an unexpected token; the token then ends the shortest part of the text that is not just incomplete.
 */
function placeOf(error: unknown, text: string): number | undefined {
  const reported = reportedPlace(error, text);
  if (reported !== undefined || text.length > searchedCharactersMax) return reported;
  let incomplete = 0;
  let broken = text.length;
  while (broken - incomplete > 1) {
    const middle = Math.floor((incomplete + broken) / 2);
    if (isBroken(text.slice(0, middle))) broken = middle;
    else incomplete = middle;
  }
  return broken - 1;
}

function isBroken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return reportedPlace(error, text) !== text.length;
  }
}

function reportedPlace(error: unknown, text: string): number | undefined {
  const { message } = error as SyntaxError;
  if (message === "Unexpected end of JSON input") return text.length;
  const place = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  return place === undefined ? undefined : Number(place);
}

function assertOneMeaning(value: object, { text, scanned }: { text: string; scanned: ScannedJson }): void {
  const counted = { keys: 0 };
  const unsafe = findUnsafe(value, counted);
  if (unsafe !== undefined) {
    const param = paramOf(unsafe.path);
    throw new Fault("invalid_value", { message: `Invalid JSON at '${param}': it ${unsafe.problem}.`, param });
  }
  if (counted.keys !== scanned.keys) {
    const param = paramOf(locateInJson(text, "duplicate key"));
    throw brokenJson(`The request's JSON says '${param}' more than once.`, param);
  }
  if (scanned.unfitAt === undefined) return;
  const param = paramOf(locateInJson(text, { numberAt: scanned.unfitAt }));
  throw new Fault("invalid_value", {
    message: `Invalid value for '${param}': no number of 64 bits is that large or that small, or it has more than ${numberCharactersMax} characters (numberCharactersMax).`,
    param,
  });
}

/** A value or key in parsed JSON that would not arrive as it was sent. */
interface Unsafe {
  readonly path: JsonPath;
  /** The problem, as the end of a sentence that begins with the path. */
  readonly problem: string;
}

const halfCharacter = "holds half of a character: an escaped surrogate without its other half";

/**
 * Finds text with a lone surrogate, which would be replaced when the text is written again. Finds also keys that would
 * reach into every object of a careless reader: `__proto__`, and `prototype` within `constructor`. Counts all keys.
 */
function findUnsafe(value: unknown, counted: { keys: number }): Unsafe | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : { problem: halfCharacter, path: [] };
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (const [place, item] of value.entries()) {
      const found = findUnsafe(item, counted);
      if (found !== undefined) return within(place, found);
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    counted.keys += 1;
    const field: unknown = Reflect.get(value, key);
    const problem = key.isWellFormed() ? prototypeProblem(key, field) : halfCharacter;
    const found = problem === undefined ? findUnsafe(field, counted) : { problem, path: [] };
    if (found !== undefined) return within(key, found);
  }
  return undefined;
}

function within(step: string | number, { problem, path }: Unsafe): Unsafe {
  return { problem, path: [step, ...path] };
}

/**
 * Returns the problem with a key that could reach a prototype. A JSON schema may have a property called `constructor`:
 * it is refused only if its value holds a `prototype`.
 */
function prototypeProblem(key: string, value: unknown): string | undefined {
  if (key === "__proto__") return "contains the key '__proto__', which is not allowed";
  if (key !== "constructor" || typeof value !== "object" || value === null) return undefined;
  return Object.hasOwn(value, "prototype")
    ? "contains the key 'prototype' in 'constructor', which is not allowed"
    : undefined;
}

function brokenJson(message: string, param?: string): Fault {
  return new Fault("invalid_json", { message, param });
}

export const jsonDepthMax = 64;
/** Values in one request: each costs far more to check than its bytes cost to send. */
export const jsonValuesMax = 49_152;
/** Keys of one object: an object with more is a table and no request, and far slower to read. */
export const jsonKeysMax = 2_048;
/** Characters of the longest number that is read; no library writes one that long. */
export const numberCharactersMax = 40;

/** A path in JSON: keys of objects and indexes of arrays. */

/** Facts that the text of JSON shows and its parsed values do not. */
interface ScannedJson {
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
function scanJson(text: string): ScannedJson {
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
      if (depth > jsonDepthMax) {
        throw brokenJson(`The request's JSON is nested more than ${jsonDepthMax} levels deep (jsonDepthMax).`);
      }
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
function locateInJson(text: string, what: "duplicate key" | { readonly numberAt: number }): JsonPath {
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

function tooMany(what: string): Fault {
  return brokenJson(`The request's JSON holds more than ${what}.`);
}
