import { isUtf8 } from "node:buffer";
import { Fault } from "#shared/fault/fault.ts";

export const jsonDepthMax = 64;
/** Values in one request: each costs far more to check than its bytes cost to send. */
export const jsonValuesMax = 32_768;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/**
 * Reads a request's body as a JSON object. Its depth and the number of its values are bounded on the bytes first, since
 * a megabyte of brackets or of tiny values would keep this process and everybody else in it busy.
 */
export function readJsonObject(bytes: Buffer | undefined): Record<string, unknown> {
  if (bytes === undefined || bytes.byteLength === 0) throw brokenJson("The request has no body; send a JSON object.");
  if (!isUtf8(bytes)) throw brokenJson("The request's body is not UTF-8.");
  insistOnBounds(bytes);
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

function insistOnBounds(bytes: Buffer): void {
  let depth = 0;
  let values = 1;
  for (let place = 0; place < bytes.byteLength; place += 1) {
    const byte = bytes[place];
    if (byte === quote) {
      place = endOfString(bytes, place + 1);
      continue;
    }
    if (byte === 0x5d || byte === 0x7d) depth -= 1;
    const opens = byte === 0x5b || byte === 0x7b;
    if (!opens && byte !== comma) continue;
    if (opens) depth += 1;
    values += 1;
    if (depth > jsonDepthMax) {
      throw brokenJson(`The request's JSON is nested more than ${jsonDepthMax} levels deep (jsonDepthMax).`);
    }
    if (values > jsonValuesMax) {
      throw brokenJson(`The request's JSON holds more than ${jsonValuesMax} values (jsonValuesMax).`);
    }
  }
}

function endOfString(bytes: Buffer, from: number): number {
  let place = from;
  while (place < bytes.byteLength && bytes[place] !== quote) place += bytes[place] === backslash ? 2 : 1;
  return place;
}

function brokenJson(message: string): Fault {
  return new Fault("invalid_json", { message });
}
