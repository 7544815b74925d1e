import { isUtf8 } from "node:buffer";
import { answerEvent, type AnswerEvent, tokenCountMax } from "./answer-events.ts";
import { jsonIn } from "./frame-payload.ts";

/**
 * One message of an agent's answer to a job: a prefix of 12 bytes, then the payload.
 *
 *     version u8 | kind u8 | flags u16 | sequence u32 | output tokens so far u32      (little-endian)
 *
 * Data frames and the terminal frame of a job are numbered 1, 2, 3 … without a gap; the other kinds carry 0. The
 * payload of a data frame is a sequence of records: see `RecordHead`. The payload of every other kind is JSON: see
 * `frame-payload.ts`.
 */
export const frameVersion = 2;
export const framePrefixBytes = 12;

/** In the order of their codes, which begin at 1. */
const frameKinds = ["accept", "reject", "part-ack", "data", "end", "fault", "beat"] as const;
export type FrameKind = (typeof frameKinds)[number];

export interface Frame {
  readonly kind: FrameKind;
  readonly sequence: number;
  readonly outputTokens: number;
  readonly payload: Uint8Array;
}

/** Returns true for the kinds that end a job. Later frames of the job are meaningless. */
export function isTerminal(kind: FrameKind): boolean {
  return kind === "end" || kind === "fault";
}

/** Writes a frame. A payload that is a text is written as UTF-8. */
export function encodeFrame(
  { kind, sequence = 0, outputTokens = 0 }: { kind: FrameKind; sequence?: number; outputTokens?: number },
  payload: string | Uint8Array,
): Uint8Array {
  const frame = Buffer.allocUnsafe(framePrefixBytes + Buffer.byteLength(payload));
  frame[0] = frameVersion;
  frame[1] = frameKinds.indexOf(kind) + 1;
  frame[2] = 0;
  frame[3] = 0;
  writeCount(frame, sequence, 4);
  writeCount(frame, Math.min(outputTokens, tokenCountMax), 8);
  if (typeof payload === "string") frame.write(payload, framePrefixBytes);
  else frame.set(payload, framePrefixBytes);
  return frame;
}

function writeCount(bytes: Uint8Array, count: number, at: number): void {
  bytes[at] = count;
  bytes[at + 1] = count >>> 8;
  bytes[at + 2] = count >>> 16;
  bytes[at + 3] = count >>> 24;
}

export type Decoded =
  | { readonly outcome: "frame"; readonly frame: Frame }
  | { readonly outcome: "unknown-kind" }
  | { readonly outcome: "other-version"; readonly version: number }
  | { readonly outcome: "malformed" };

/**
 * Reads a frame; the payload is a view of `bytes`. A kind of a later minor version gives `unknown-kind`, not
 * `malformed`.
 */
export function decodeFrame(bytes: Uint8Array): Decoded {
  const payloadBytes = bytes.byteLength - framePrefixBytes;
  if (payloadBytes < 0) return { outcome: "malformed" };
  const version = bytes[0] ?? 0;
  if (version !== frameVersion) return { outcome: "other-version", version };
  const kind = frameKinds[(bytes[1] ?? 0) - 1];
  if (kind === undefined) return { outcome: "unknown-kind" };
  return {
    outcome: "frame",
    frame: {
      kind,
      sequence: countAt(bytes, 4),
      outputTokens: countAt(bytes, 8),
      payload: Buffer.from(bytes.buffer, bytes.byteOffset + framePrefixBytes, payloadBytes),
    },
  };
}

/** Reads a little-endian u32. Written by hand for speed: each frame of each answer has two. */
function countAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);
  return low + (bytes[at + 3] ?? 0) * 0x1_00_00_00;
}

/**
 * The payload of a data frame is UTF-8 text: a sequence of records.
 *
 *     head | length | ":" | text             t5:Hello r3:Hmm j33:{"kind":"finish","reason":"stop"}   (without blanks)
 *
 * `t` is a text and `r` a reasoning of the first choice, as plain text. `v` is an embedding: its index, a colon and the
 * vector as base64 of doubles, little-endian. `b` is a piece of audio: its media type or nothing, a colon and the bytes
 * as base64, which costs a third more on the line than a second kind of payload would, and needs no other way. `j` is any other answer event as JSON; the answers to `models` and
 * `manage` jobs are `j` records too. The length is decimal and counts UTF-16 units, so that a
 * reader decodes a frame once and slices it. A record may go on in the next frame, but not before its colon.
 */
export type RecordHead = "t" | "r" | "v" | "b" | "j";

export interface DataRecord {
  readonly head: RecordHead;
  readonly text: string;
}

/** Bounds the text of a `t` or `r` record and the arguments in a tool call's record; a longer piece takes several. */
export const recordTextMax = 2_048;

export function openRecord({ head, text }: DataRecord): string {
  return `${head}${text.length}:`;
}

export function jsonRecord(value: unknown): DataRecord {
  return { head: "j", text: JSON.stringify(value) };
}

/** Appends the records of an answer event. */
export function addRecords(event: AnswerEvent, records: DataRecord[]): void {
  const { kind } = event;
  if (kind === "embedding") {
    records.push({ head: "v", text: `${event.index}:${writtenVector(event.vector)}` });
  } else if (kind === "audio") {
    records.push({ head: "b", text: `${event.type ?? ""}:${Buffer.from(event.bytes).toString("base64")}` });
  } else if (kind === "tool-call-delta") {
    for (const piece of piecesOf(event.arguments)) records.push(jsonRecord({ ...event, arguments: piece }));
  } else if ((kind !== "text" && kind !== "reasoning") || (kind === "text" && event.logprobs !== undefined)) {
    records.push(jsonRecord(event));
  } else if ((event.choice ?? 0) === 0 && event.text.isWellFormed()) {
    const head = kind === "text" ? "t" : "r";
    for (const text of piecesOf(event.text)) records.push({ head, text });
  } else {
    // UTF-8 has no form for half a surrogate pair; JSON has.
    for (const text of piecesOf(event.text)) records.push(jsonRecord({ ...event, text }));
  }
}

/** Cuts a text into pieces of at most `recordTextMax` units, between characters. */
export function piecesOf(text: string): readonly string[] {
  if (text.length <= recordTextMax) return [text];
  const pieces: string[] = [];
  for (let from = 0; from < text.length;) {
    let to = from + recordTextMax;
    const last = text.charCodeAt(to - 1);
    const isHighSurrogate = last >= 0xd800 && last <= 0xdbff;
    if (isHighSurrogate) to -= 1;
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
}

const encoder = new TextEncoder();

/** Returns the longest beginning of a text, between characters, that takes at most this many bytes. */
export function beginOf(text: string, bytesMax: number): string {
  const { read } = encoder.encodeInto(text, new Uint8Array(Math.max(0, bytesMax)));
  return text.slice(0, read);
}

/** Returns the answer event of a record, or undefined when it is none. */
export function eventOf({ head, text }: DataRecord): AnswerEvent | undefined {
  if (head === "v") return embeddingIn(text);
  if (head === "b") return audioIn(text);
  if (head !== "j") return text === "" ? undefined : { kind: head === "t" ? "text" : "reasoning", text };
  return answerEvent.safeParse(jsonIn(text)).data;
}

const doubleBytes = 8;

function writtenVector(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * doubleBytes);
  for (const [at, component] of vector.entries()) bytes.writeDoubleLE(component, at * doubleBytes);
  return bytes.toString("base64");
}

function embeddingIn(text: string): AnswerEvent | undefined {
  const [, index, written = ""] = /^(\d{1,9}):([A-Za-z0-9+/=]*)$/.exec(text) ?? [];
  const bytes = Buffer.from(written, "base64");
  if (index === undefined || bytes.byteLength % doubleBytes !== 0) return undefined;
  const vector: number[] = [];
  for (let at = 0; at < bytes.byteLength; at += doubleBytes) vector.push(bytes.readDoubleLE(at));
  return { kind: "embedding", index: Number(index), vector };
}

/** Returns the audio of a record. No other media type passes, so a machine cannot have its bytes shown as a page. */
function audioIn(text: string): AnswerEvent | undefined {
  const [, type, written = ""] = /^(audio\/[a-z0-9.+-]{1,40})?:([A-Za-z0-9+/=]*)$/.exec(text) ?? [];
  return written === "" ? undefined : { kind: "audio", type, bytes: Buffer.from(written, "base64") };
}

const colon = 0x3a;
const [zero, nine] = [0x30, 0x39];
/** More digits than this are no length, whatever the reader's limit. */
const digitsMax = 9;

interface BegunRecord {
  readonly head: RecordHead;
  readonly pieces: string[];
}

/** Reads the records of a job's data frames. `broken` makes the error to throw when the payload is invalid. */
export class RecordReader {
  readonly #textMax: number;
  readonly #broken: (what: string) => Error;
  /** The record that goes on in the next frame: its pieces so far, and the units that are missing. */
  #begun: BegunRecord | undefined;
  #missing = 0;

  constructor(options: { readonly textMax: number; readonly broken: (what: string) => Error }) {
    this.#textMax = options.textMax;
    this.#broken = options.broken;
  }

  /** True if a record has begun and its end has not arrived. */
  get hasBegun(): boolean {
    return this.#begun !== undefined;
  }

  /** Returns the records that this payload completes. */
  read(payload: Uint8Array): DataRecord[] {
    if (!isUtf8(payload)) throw this.#broken("a data frame that is not UTF-8");
    const bytes = Buffer.isBuffer(payload)
      ? payload
      : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    const text = bytes.toString();
    const records: DataRecord[] = [];
    let at = this.#begun === undefined ? 0 : this.#goOn(this.#begun, text, records);
    while (at < text.length) {
      const head = text[at];
      if (head !== "t" && head !== "r" && head !== "v" && head !== "b" && head !== "j")
        throw this.#broken("a record with an unknown head");
      const colonAt = this.#colonAfter(text, at + 1);
      const length = Number(text.slice(at + 1, colonAt));
      if (length > this.#textMax) throw this.#broken(`a record of ${length} characters (at most ${this.#textMax})`);
      const end = colonAt + 1 + length;
      if (end <= text.length) records.push({ head, text: text.slice(colonAt + 1, end) });
      else {
        this.#begun = { head, pieces: [text.slice(colonAt + 1)] };
        this.#missing = end - text.length;
      }
      at = end;
    }
    return records;
  }

  /** Takes the rest of a record that began in an earlier frame, and returns where the next one begins. */
  #goOn({ head, pieces }: BegunRecord, text: string, records: DataRecord[]): number {
    const piece = text.slice(0, this.#missing);
    pieces.push(piece);
    this.#missing -= piece.length;
    if (this.#missing > 0) return text.length;
    this.#begun = undefined;
    records.push({ head, text: pieces.join("") });
    return piece.length;
  }

  #colonAfter(text: string, from: number): number {
    let at = from;
    while (at - from <= digitsMax) {
      const unit = text.charCodeAt(at);
      if (unit === colon && at > from) return at;
      if (!(unit >= zero && unit <= nine)) break;
      at += 1;
    }
    throw this.#broken("a record without a length");
  }
}
