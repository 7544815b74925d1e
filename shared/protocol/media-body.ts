import { z } from "zod";
import { jsonIn } from "./frame-payload.ts";
import type { FurtherAbility } from "./model.ts";

/**
 * The paths of a runtime that a `media` job may ask, of OpenAI's API and, about tokens, of vLLM and llama-server, with the
 * ability that each needs of its model.
 */
export const abilityAt = {
  "/v1/audio/transcriptions": "transcription",
  "/v1/audio/translations": "transcription",
  "/v1/audio/speech": "speech",
  "/v1/images/generations": "image",
  "/v1/images/edits": "image",
  "/v1/moderations": "moderation",
  "/tokenize": "tokenize",
  "/detokenize": "tokenize",
} as const satisfies Readonly<Record<string, FurtherAbility>>;
export type MediaPath = keyof typeof abilityAt;

const value = z.union([z.string(), z.number(), z.boolean()]);
/** A part of a text that is judged: some words, or an image. */
const part = z.record(z.string(), z.unknown());

const mediaHead = z.strictObject({
  path: z.literal(Object.keys(abilityAt) as MediaPath[]),
  /** The form of the runtime's answer; `transcript` is a stream of events, of which only the texts are passed on. */
  answer: z.enum(["json", "text", "transcript", "audio"]),
  /** The fields of the request without its model, whose name the agent knows. */
  fields: z.record(z.string(), z.union([value, z.array(z.union([value, part]))])),
  files: z.array(
    z.strictObject({ field: z.string(), name: z.string(), type: z.string(), bytes: z.int().nonnegative() }),
  ),
});
export type MediaHead = z.infer<typeof mediaHead>;

/** The body of a `media` job: a request for a path of the runtime, with the bytes of its files. */
export interface MediaBody extends MediaHead {
  readonly contents: readonly Uint8Array[];
}

const lengthBytes = 4;

/**
 * Encodes the body of a job: the length of its head, the head as JSON, and the bytes of the files behind each other. The
 * files are copied once, into memory of their own, which may move to another thread.
 */
export function encodeMediaBody({ contents, ...head }: MediaBody): Uint8Array {
  const json = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(json.byteLength);
  const pieces = [length, json, ...contents];
  const body = new Uint8Array(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.byteLength;
  }
  return body;
}

/** Decodes the body of a job; the files are views of `body`. Returns undefined for a body of another form. */
export function decodeMediaBody(body: Uint8Array): MediaBody | undefined {
  if (body.byteLength < lengthBytes) return undefined;
  const end = lengthBytes + new DataView(body.buffer, body.byteOffset).getUint32(0, true);
  const head = mediaHead.safeParse(jsonIn(Buffer.from(body.subarray(lengthBytes, end)).toString())).data;
  if (head === undefined) return undefined;
  let at = end;
  const contents = head.files.map(({ bytes }) => body.subarray(at, (at += bytes)));
  return at === body.byteLength ? { ...head, contents } : undefined;
}
