/**
 * One message of an agent's answer to a job: a prefix of 12 bytes, then the payload.
 *
 *     version u8 | kind u8 | flags u16 | sequence u32 | output tokens so far u32      (little-endian)
 *
 * Data frames and the terminal frame of a job are numbered 1, 2, 3 … without a gap; the other kinds carry 0. The
 * payload of a data frame is a sequence of records: see `answer-records.ts`. The payload of every other kind is JSON:
 * see `frame-payload.ts`.
 */
export const frameVersion = 2;
export const framePrefixBytes = 12;

/** The largest count that fits into a frame. A runtime may report more tokens; the frame then carries this maximum. */
const countMax = 0xffff_ffff;

const kindCodes = { accept: 1, reject: 2, "part-ack": 3, data: 4, end: 5, fault: 6, beat: 7 } as const;
export type FrameKind = keyof typeof kindCodes;

/** Frame kinds, indexed by their code. */
const kindsByCode: readonly (FrameKind | undefined)[] = [
  undefined,
  "accept",
  "reject",
  "part-ack",
  "data",
  "end",
  "fault",
  "beat",
];

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

export function encodeFrame(
  { kind, sequence = 0, outputTokens = 0 }: { kind: FrameKind; sequence?: number; outputTokens?: number },
  payload: Uint8Array,
): Uint8Array {
  const frame = Buffer.allocUnsafe(framePrefixBytes + payload.byteLength);
  frame[0] = frameVersion;
  frame[1] = kindCodes[kind];
  frame[2] = 0;
  frame[3] = 0;
  writeCount(frame, sequence, 4);
  writeCount(frame, Math.min(outputTokens, countMax), 8);
  frame.set(payload, framePrefixBytes);
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

const malformed: Decoded = { outcome: "malformed" };
const unknownKind: Decoded = { outcome: "unknown-kind" };

/**
 * Reads a frame; the payload is a view of `bytes`. A kind of a later minor version gives `unknown-kind`, not
 * `malformed`.
 */
export function decodeFrame(bytes: Uint8Array): Decoded {
  const payloadBytes = bytes.byteLength - framePrefixBytes;
  if (payloadBytes < 0) return malformed;
  const version = bytes[0] ?? 0;
  if (version !== frameVersion) return { outcome: "other-version", version };
  const kind = kindsByCode[bytes[1] ?? 0];
  if (kind === undefined) return unknownKind;
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
