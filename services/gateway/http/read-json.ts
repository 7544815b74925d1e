import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { JsonPath } from "#shared/protocol/frame-payload.ts";
import { unknownFields } from "#shared/protocol/job-bodies.ts";
import { brokenJson, holdsPrototype, notUtf8, syntaxFault, unsafeValue } from "./json-faults.ts";
import { type Issue, paramOf, shapeFault } from "./shape-faults.ts";

export const jsonDepthMax = 64;
/** Values in one request: each costs far more to check than its bytes cost to send. */
export const jsonValuesMax = 49_152;
/** Keys of one object: an object with more is a table and no request, and far slower to read. */
export const jsonKeysMax = 2_048;
/** Characters of the longest number that is read; no library writes one that long. */
export const numberCharactersMax = 40;

/**
 * Reads a request's body as a JSON object that means the same to every later reader. Refuses JSON that could not be
 * passed on unchanged, and tells the client where the problem is.
 */
export function readJsonObject(bytes: Buffer | undefined): Record<string, unknown> {
  if (bytes === undefined || bytes.byteLength === 0) throw brokenJson("The request has no body; send a JSON object.");
  if (!isUtf8(bytes)) throw notUtf8(bytes);
  const text = bytes.toString("utf8");
  if (text.startsWith("\ufeff"))
    throw brokenJson("The request's body begins with a byte order mark; send the JSON without it.");
  const { keys, unfitAt } = scanJson(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw syntaxFault(error, text);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Fault("invalid_type", { message: "The request's body must be a JSON object." });
  const counted = countKeys(value);
  if (Number.isNaN(counted)) throw unsafeValue(value);
  if (counted !== keys) {
    const param = paramOf(locateInJson(text, "duplicate key"));
    throw brokenJson(`The request's JSON says '${param}' more than once.`, param);
  }
  if (unfitAt !== undefined) {
    const param = paramOf(locateInJson(text, { numberAt: unfitAt }));
    throw new Fault("invalid_value", {
      message: `Invalid value for '${param}': no number of 64 bits is that large or that small, or it has more than ${numberCharactersMax} characters (numberCharactersMax).`,
      param,
    });
  }
  return value as Record<string, unknown>;
}

/**
 * Returns the number of keys of all objects in parsed JSON, where a duplicate key counts once. Not a number for a text or
 * a key that would not arrive as it was sent.
 */
function countKeys(value: unknown): number {
  if (typeof value === "string") return value.isWellFormed() ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  let keys = 0;
  if (Array.isArray(value)) {
    for (const each of value) keys += countKeys(each);
    return keys;
  }
  for (const key of Object.keys(value)) {
    const field: unknown = Reflect.get(value, key);
    const isSafe = key.isWellFormed() && key !== "__proto__" && (key !== "constructor" || !holdsPrototype(field));
    keys += isSafe ? 1 + countKeys(field) : Number.NaN;
  }
  return keys;
}

interface Shaped<Output> {
  readonly value: Output;
  /** Paths of unknown fields; they are left out, and the client gets their names. */
  readonly ignored: readonly string[];
}

/**
 * `abortEarly` ends at the first error. It is an internal option of zod, which only `validate` sets. Without it, a
 * message of 49,000 wrong parts (98 KB) holds the event loop for 190 ms instead of 3. `npm run bench` measures it.
 */
const context: z.core.ParseContextInternal<Issue> = { reportInput: true, abortEarly: true };

/**
 * Reads a request with its schema. Unknown fields are ignored and listed, at every depth; a strict schema refuses them.
 * Everything else that does not match is a fault; only the first one is reported.
 */
export function readShape<Schema extends z.ZodType>(
  schema: Schema,
  input: Record<string, unknown>,
): Shaped<z.output<Schema>> {
  const { success, data, error } = schema.safeParse(input, context);
  if (!success) throw shapeFault(error.issues);
  return { value: data, ignored: unknownFields(input, data).map(paramOf) };
}

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

/** Number of keys of each open object, by its depth. One scan ends before the next begins. */
const keysAt = new Uint32Array(jsonDepthMax + 1);

/**
 * Bounds the depth of JSON and the number of its values before it is parsed. A megabyte of brackets or of tiny values
 * would block this thread and all its other requests.
 */
function scanJson(text: string): ScannedJson {
  keysAt[0] = 0;
  let depth = 0;
  let values = 1;
  let keys = 0;
  let unfitAt: number | undefined;
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charCodeAt(index);
    if (character === quote) index = endOfString(text, index + 1);
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
      const end = endOfNumber(text, index);
      if (unfitAt === undefined && isUnfit(text, index, end)) unfitAt = index;
      index = end - 1;
    }
    if (values > jsonValuesMax) throw tooMany(`${jsonValuesMax} values (jsonValuesMax)`);
  }
  return { keys, unfitAt };
}

/** Returns the path to the first duplicate key, or to the number at `numberAt`. The text must be valid JSON. */
function locateInJson(text: string, what: "duplicate key" | { readonly numberAt: number }): JsonPath {
  const open: OpenValue[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const holder = open.at(-1);
    const character = text.charCodeAt(index);
    if (character === openingBrace) open.push({ keys: new Set(), step: "", awaitsKey: true });
    else if (character === openingBracket) open.push({ keys: undefined, step: 0, awaitsKey: false });
    else if (character === closingBrace || character === closingBracket) open.pop();
    else if (character === comma && holder !== undefined) {
      holder.awaitsKey = holder.keys !== undefined;
      if (typeof holder.step === "number") holder.step += 1;
    } else if (character === quote) {
      const end = endOfString(text, index + 1);
      const isDuplicate = holder?.awaitsKey === true && enterKey(holder, text.slice(index, end + 1));
      if (isDuplicate && what === "duplicate key") break;
      index = end;
    } else if (startsNumber(character)) {
      if (typeof what === "object" && what.numberAt === index) break;
      index = endOfNumber(text, index) - 1;
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
  for (let index = text.indexOf('"', from); index !== -1; index = text.indexOf('"', index + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(index - backslashes - 1) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return index;
  }
  return text.length;
}

function startsNumber(character: number): boolean {
  return (character >= 0x30 && character <= 0x39) || character === 0x2d;
}

function endOfNumber(text: string, from: number): number {
  let index = from + 1;
  while (index < text.length && isInNumber(text.charCodeAt(index))) index += 1;
  return index;
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
