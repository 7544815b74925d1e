import { isUtf8 } from "node:buffer";
import { Fault } from "#shared/fault/fault.ts";
import { parseExactly } from "#shared/process/exact-json.ts";
import { numberCharactersMax } from "./exact-number.ts";
import { findNumber, findRepeatedKey } from "./find-in-json.ts";
import { findMisfit } from "./find-misfit.ts";
import { findNoUtf8 } from "./find-no-utf8.ts";
import { newline } from "./json-text.ts";
import { lookThrough } from "./look-through.ts";
import { paramOf } from "./param-of.ts";
import { scanJson, type ScannedJson } from "./scan-json.ts";

/** Longest body in which a syntax error is located: to locate it takes longer than to read the body. */
const placedBytesMax = 4 * 1024 * 1024;

const byteOrderMark = Buffer.of(0xef, 0xbb, 0xbf);

/**
 * Reads a request's body as a JSON object that means the same to every later reader. Refuses JSON that could not be
 * passed on unchanged, and tells the client where the problem is.
 */
export function readJsonObject(bytes: Buffer | undefined): Record<string, unknown> {
  if (bytes === undefined || bytes.byteLength === 0) throw brokenJson("The request has no body; send a JSON object.");
  insistOnText(bytes);
  const scanned = scanJson(bytes);
  const value = parse(bytes, scanned);
  if (!isObject(value)) {
    throw new Fault("invalid_type", { message: "The request's body must be a JSON object." });
  }
  insistOnOneMeaning(value, { bytes, scanned });
  return value;
}

function insistOnText(bytes: Buffer): void {
  if (!isUtf8(bytes)) {
    throw brokenJson(`The request's body is not UTF-8; what is not begins at byte ${findNoUtf8(bytes) + 1}.`);
  }
  if (bytes.subarray(0, byteOrderMark.byteLength).equals(byteOrderMark)) {
    throw brokenJson("The request's body begins with a byte order mark; send the JSON without it.");
  }
}

function parse(bytes: Buffer, { hasBigInteger }: ScannedJson): unknown {
  try {
    const text = bytes.toString("utf8");
    return hasBigInteger ? parseExactly(text) : JSON.parse(text);
  } catch {
    if (bytes.byteLength > placedBytesMax) throw brokenJson("The request's body is not valid JSON.");
    const misfit = findMisfit(bytes);
    if (misfit >= bytes.byteLength) throw brokenJson("The request's body is not valid JSON: it ends too early.");
    throw brokenJson(`The request's body is not valid JSON from ${lineAndColumn(bytes, misfit)} on.`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function insistOnOneMeaning(value: object, { bytes, scanned }: { bytes: Buffer; scanned: ScannedJson }): void {
  const { treacherous, keys } = lookThrough(value);
  if (treacherous !== undefined) {
    const param = paramOf(treacherous.path);
    throw new Fault("invalid_value", { message: `Invalid JSON at '${param}': it ${treacherous.what}.`, param });
  }
  if (keys !== scanned.keys) {
    const param = paramOf(findRepeatedKey(bytes) ?? []);
    throw brokenJson(`The request's JSON says '${param}' more than once.`, param);
  }
  if (scanned.unfitAt === undefined) return;
  const param = paramOf(findNumber(bytes, scanned.unfitAt) ?? []);
  throw new Fault("invalid_value", {
    message: `Invalid value for '${param}': no number of 64 bits is that large or that small, or it has more than ${numberCharactersMax} characters (numberCharactersMax).`,
    param,
  });
}

function lineAndColumn(bytes: Buffer, place: number): string {
  let lines = 1;
  for (let at = 0; at < place; at += 1) if (bytes[at] === newline) lines += 1;
  const line = bytes.toString("utf8", place === 0 ? 0 : bytes.lastIndexOf(newline, place - 1) + 1, place);
  return `line ${lines}, column ${line.length + 1}`;
}

function brokenJson(message: string, param?: string): Fault {
  return new Fault("invalid_json", { message, ...(param === undefined ? {} : { param }) });
}
