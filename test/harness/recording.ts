import { readFileSync, writeFileSync } from "node:fs";
import { anyOf, filled, masked } from "./filler.ts";
import type { RecordedExchange } from "./recorder.ts";

/** One request of a recording. */
export interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** The HTTP traffic of one client in one task. */
export interface Recording {
  readonly client: string;
  readonly version: string;
  readonly requests: readonly RecordedRequest[];
}

/** Texts of a recording that may stay, and texts of this machine that may not. */
export interface RecordingTexts {
  /** Texts of the test itself. All other prose becomes filler. */
  readonly own: readonly string[];
  /** What stands in the recording for each text of this machine, such as a path. */
  readonly instead: Readonly<Record<string, string>>;
}

/** Headers of one connection, and those that a replay sets itself. */
const headersLeftOut = new Set([
  "host",
  "connection",
  "content-length",
  "accept-encoding",
  "authorization",
  "x-api-key",
]);

/** Makes a recording of what passed a recorder. It has no secret, no text of other projects and no trace of this machine. */
export function recordingOf(
  client: { readonly name: string; readonly version: string },
  exchanges: readonly RecordedExchange[],
  texts: RecordingTexts,
): Recording {
  const plain = plainOf(texts);
  const requests = exchanges.map(({ method, url, headers, body }) => {
    const told = Object.entries(headers).filter(([name]) => !headersLeftOut.has(name));
    return {
      method,
      url: plain.name(url),
      headers: Object.fromEntries(told.map(([name, value]) => [name, plain.name(String(value))])),
      ...(body !== undefined && { body: plain.value(body) }),
    };
  });
  return { client: client.name, version: client.version, requests };
}

/** What is another in each run: a UUID, a prefixed id of an answer, many hexadecimal digits, a time in Unix seconds or ms. */
const chance =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?:resp|msg|rs|fc|ctc|call|toolu|req|ses|prt)_[0-9A-Za-z]{12,}|\b[0-9a-f]{16,}\b|\b1[789]\d{8}(?:\d{3})?\b/g;
/** A word or two of an interface: a name, a type, a tool. */
const nameCharactersMax = 64;
const name = /^[\w.:/@$#*+-]*$/;

function plainOf({ own, instead }: RecordingTexts) {
  const kept = anyOf([...own, ...Object.values(instead)]);
  const ofMachine = anyOf(Object.keys(instead));
  const ids = new Map<string, string>();
  /** Counts ids, each with its own prefix, punctuation and length. All times are one. */
  const counted = (id: string): string => {
    const known = ids.get(id);
    if (known !== undefined) return known;
    if (/^\d{10,13}$/.test(id)) return id.replaceAll(/(?<=^1[789].*)\d/g, "0");
    const prefix = /^[a-z]+_/.exec(id)?.[0] ?? "";
    const digits = String(ids.size + 1);
    const zeros = id.slice(prefix.length, -digits.length).replaceAll(/[^-]/g, "0");
    ids.set(id, `${prefix}${zeros}${digits}`);
    return `${prefix}${zeros}${digits}`;
  };
  const withoutChance = (text: string): string =>
    text
      .split(ofMachine)
      .map((piece, place) => (place % 2 === 1 ? (instead[piece] ?? "") : piece))
      .join("")
      .replaceAll(chance, counted);
  const textOf = (given: string): string => {
    // A picture of ours, also where the client wrote it anew.
    if (given.startsWith("data:image/")) return given;
    const json = objectIn(given);
    if (json !== undefined) return JSON.stringify(valueOf(json));
    const text = withoutChance(given);
    const isName = text.length <= nameCharactersMax && name.test(text);
    return isName ? text : masked(text, kept);
  };
  const valueOf = (value: unknown): unknown => {
    if (typeof value === "string") return textOf(value);
    if (typeof value === "number") return Number(withoutChance(String(value)));
    if (Array.isArray(value)) return value.map(valueOf);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, valueOf(inner)]));
  };
  return { name: withoutChance, value: valueOf };
}

function objectIn(text: string): object | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

/** Values with fewer characters as JSON are written each time that they occur. */
const partCharactersMin = 80;
const part = "$part";

/** Writes a recording as lines of JSON. A value that occurs in many requests is written once, as a part with a number. */
export function writeRecording(path: string, { requests, ...head }: Recording): void {
  const parts = new Map<string, number>();
  const packed = (value: unknown): unknown => {
    if (typeof value === "string") return partOf(value);
    if (Array.isArray(value)) return partOf(value.map(packed));
    if (typeof value !== "object" || value === null) return value;
    return partOf(Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, packed(inner)])));
  };
  const partOf = (value: unknown): unknown => {
    const json = JSON.stringify(value);
    if (json.length < partCharactersMin) return value;
    const number = parts.get(json) ?? parts.size;
    parts.set(json, number);
    return { [part]: number };
  };
  const lines = requests.map(({ body, headers, ...request }) => {
    return JSON.stringify({ ...request, headers: packed(headers), body: packed(body) });
  });
  writeFileSync(path, [JSON.stringify(head), String(parts.size), ...parts.keys(), ...lines, ""].join("\n"));
}

/** Reads a recording, with filler in the place of its marks. */
export function readRecording(path: string): Recording {
  const [head = "", count = "", ...lines] = readFileSync(path, "utf8").trimEnd().split("\n");
  const parts: unknown[] = [];
  const whole = (value: unknown): unknown => {
    if (typeof value === "string") return filled(value);
    if (Array.isArray(value)) return value.map(whole);
    if (typeof value !== "object" || value === null) return value;
    const number: unknown = Reflect.get(value, part);
    if (typeof number === "number") return parts[number];
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, whole(inner)]));
  };
  for (const line of lines.slice(0, Number(count))) parts.push(whole(JSON.parse(line)));
  const requests = lines.slice(Number(count)).map((line) => whole(JSON.parse(line)) as RecordedRequest);
  return { ...(JSON.parse(head) as Omit<Recording, "requests">), requests };
}
