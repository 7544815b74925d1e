import { isUtf8 } from "node:buffer";
import { Fault } from "#shared/fault/fault.ts";

export const jsonDepthMax = 64;

const quote = 0x22;
const backslash = 0x5c;

/**
 * Reads a request's body as a JSON object. Depth is checked on the bytes first, since a megabyte of brackets would
 * keep the parser and everybody else busy.
 */
export function readJsonObject(bytes: Buffer): Record<string, unknown> {
  if (bytes.byteLength === 0) throw brokenJson("The request has no body; send a JSON object.");
  if (!isUtf8(bytes)) throw brokenJson("The request's body is not UTF-8.");
  if (deeperThan(bytes, jsonDepthMax)) {
    throw brokenJson(`The request's JSON is nested more than ${jsonDepthMax} levels deep (jsonDepthMax).`);
  }
  const value = parse(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Fault("invalid_type", { message: "The request's body must be a JSON object." });
  }
  return { ...value };
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw brokenJson("The request's body is not valid JSON.");
  }
}

function deeperThan(bytes: Buffer, levels: number): boolean {
  let depth = 0;
  for (let place = 0; place < bytes.byteLength; place += 1) {
    const byte = bytes[place];
    if (byte === quote) place = endOfString(bytes, place + 1);
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > levels) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}

function endOfString(bytes: Buffer, from: number): number {
  let end = bytes.indexOf(quote, from);
  while (end !== -1) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === backslash) escapes += 1;
    if (escapes % 2 === 0) return end;
    end = bytes.indexOf(quote, end + 1);
  }
  return bytes.byteLength;
}

function brokenJson(message: string): Fault {
  return new Fault("invalid_json", { message });
}
