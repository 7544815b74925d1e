import { isUtf8 } from "node:buffer";
import { Fault } from "#shared/fault/fault.ts";
import type { JsonPath } from "#shared/protocol/frame-payload.ts";
import { paramOf } from "./shape-faults.ts";

// The faults of a request's body that is no JSON, or that would not arrive as it was sent, with the position of the problem.

export function brokenJson(message: string, param?: string): Fault {
  return new Fault("invalid_json", { message, param });
}

export function notUtf8(bytes: Buffer): Fault {
  return brokenJson(`The request's body is not UTF-8; what is not begins at byte ${endOfUtf8(bytes) + 1}.`);
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

/** Returns the fault of a text that `JSON.parse` refused with `error`. */
export function syntaxFault(error: unknown, text: string): Fault {
  const position = positionOf(error, text);
  if (position === undefined) return brokenJson("The request's body is not valid JSON.");
  if (position >= text.length) return brokenJson("The request's body is not valid JSON: it ends too early.");
  const lines = text.slice(0, position).split("\n");
  const column = (lines.at(-1)?.length ?? 0) + 1;
  return brokenJson(`The request's body is not valid JSON from line ${lines.length}, column ${column} on.`);
}

/** Longest text in which an error without a position is searched for: the search parses the text several times. */
const searchedCharactersMax = 64 * 1024;

/**
 * Returns the position of a syntax error as V8 reports it, or the length of a text that ends too early. V8 reports no
 * position for an unexpected token; the token then ends the shortest part of the text that is not just incomplete.
 */
function positionOf(error: unknown, text: string): number | undefined {
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
  const position = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  return position === undefined ? undefined : Number(position);
}

/** Returns the fault of the first text or key in parsed JSON that would not arrive as it was sent. */
export function unsafeValue(value: object): Fault {
  const { path, problem } = findUnsafe(value) ?? { path: [], problem: halfCharacter };
  const param = paramOf(path);
  return new Fault("invalid_value", { message: `Invalid JSON at '${param}': it ${problem}.`, param });
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
 * reach into every object of a careless reader: `__proto__`, and `prototype` within `constructor`.
 */
function findUnsafe(value: unknown): Unsafe | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : { problem: halfCharacter, path: [] };
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = findUnsafe(item);
      if (found !== undefined) return within(index, found);
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    const field: unknown = Reflect.get(value, key);
    const problem = key.isWellFormed() ? prototypeProblem(key, field) : halfCharacter;
    const found = problem === undefined ? findUnsafe(field) : { problem, path: [] };
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
  const reaches = key === "constructor" && holdsPrototype(value);
  return reaches ? "contains the key 'prototype' in 'constructor', which is not allowed" : undefined;
}

export function holdsPrototype(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.hasOwn(value, "prototype");
}
