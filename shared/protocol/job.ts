import { z } from "zod";
import { modelId } from "../model/model.ts";
import { limits } from "./limits.ts";
import { tokenText } from "./token.ts";

/** What can be asked of a machine. An agent rejects a kind that it does not know or does not allow. */
export const jobKinds = ["models", "chat", "complete", "embed", "manage"] as const;
export type JobKind = (typeof jobKinds)[number];

const header = {
  id: "tl-job",
  kind: "tl-kind",
  shape: "tl-shape",
  model: "tl-model",
  keyId: "tl-key",
  remainingMs: "tl-remaining-ms",
  bodyBytes: "tl-body-bytes",
  sha256: "tl-sha256",
  responseId: "tl-response-id",
  createdSeconds: "tl-created",
  includeUsage: "tl-include-usage",
  credit: "tl-credit",
  traceparent: "traceparent",
  offset: "tl-offset",
} as const;

/** What routes and bounds a job. The body is the request itself; `sha256` is set when it follows in parts. */
export interface JobHead {
  readonly id: string;
  readonly kind: JobKind;
  readonly shape: string;
  readonly model?: string | undefined;
  /** The key that asked; a gateway asks for itself without one. */
  readonly keyId?: string | undefined;
  readonly remainingMs: number;
  readonly bodyBytes: number;
  readonly sha256?: string | undefined;
  readonly responseId?: string | undefined;
  readonly createdSeconds?: number | undefined;
  readonly includeUsage?: boolean | undefined;
  /**
   * How many bytes of the answer may be sent before the first credit. A job that names none comes from a gateway that
   * gives no credit and attaches to nothing.
   */
  readonly credit?: number | undefined;
  readonly traceparent?: string | undefined;
}

type Readers = { readonly [Field in keyof JobHead]-?: (text: string) => JobHead[Field] | undefined };

/** Each field of a head from its text, or nothing where the text is none of it. By hand, since every request has one. */
const readers: Readers = {
  id: matching(tokenText),
  kind: (text) => jobKinds.find((kind) => kind === text),
  shape: noLongerThan(40),
  model: readModel,
  keyId: noLongerThan(64),
  remainingMs: decimalOf,
  bodyBytes: (text) => {
    const bytes = decimalOf(text);
    return bytes !== undefined && bytes <= limits.jobBodyBytesMax ? bytes : undefined;
  },
  sha256: matching(/^[0-9a-f]{64}$/),
  responseId: noLongerThan(100),
  createdSeconds: decimalOf,
  includeUsage: (text) => (text === "1" ? true : text === "0" ? false : undefined),
  credit: decimalOf,
  traceparent: noLongerThan(100),
};

function matching(pattern: RegExp): (text: string) => string | undefined {
  return (text) => (pattern.test(text) ? text : undefined);
}

function noLongerThan(characters: number): (text: string) => string | undefined {
  return (text) => (text.length <= characters ? text : undefined);
}

function decimalOf(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

let lastModel: { readonly text: string; readonly id: string | undefined } | undefined;

/** Most jobs that come to one machine are for the model that the one before them was for. */
function readModel(text: string): string | undefined {
  if (lastModel?.text !== text) lastModel = { text, id: decodedModel(text) };
  return lastModel.id;
}

function decodedModel(text: string): string | undefined {
  try {
    return modelId.safeParse(decodeURIComponent(text)).data;
  } catch {
    return undefined;
  }
}

const jobFields = [
  "id",
  "kind",
  "shape",
  "model",
  "keyId",
  "remainingMs",
  "bodyBytes",
  "sha256",
  "responseId",
  "createdSeconds",
  "includeUsage",
  "credit",
  "traceparent",
] as const satisfies readonly (keyof JobHead)[];

export type Headers = Readonly<Record<string, string>>;

/** Field by field and by hand, since every request has one. */
export function encodeJobHead(head: JobHead): Headers {
  const { model, keyId, sha256, responseId, createdSeconds, includeUsage, credit, traceparent } = head;
  const headers: Record<string, string> = {};
  headers[header.id] = head.id;
  headers[header.kind] = head.kind;
  headers[header.shape] = head.shape;
  if (model !== undefined) headers[header.model] = encodedModel(model);
  if (keyId !== undefined) headers[header.keyId] = keyId;
  headers[header.remainingMs] = String(head.remainingMs);
  headers[header.bodyBytes] = String(head.bodyBytes);
  if (sha256 !== undefined) headers[header.sha256] = sha256;
  if (responseId !== undefined) headers[header.responseId] = responseId;
  if (createdSeconds !== undefined) headers[header.createdSeconds] = String(createdSeconds);
  if (includeUsage !== undefined) headers[header.includeUsage] = includeUsage ? "1" : "0";
  if (credit !== undefined) headers[header.credit] = String(credit);
  if (traceparent !== undefined) headers[header.traceparent] = traceparent;
  return headers;
}

let lastEncoded: { readonly id: string; readonly text: string } | undefined;

function encodedModel(id: string): string {
  if (lastEncoded?.id !== id) lastEncoded = { id, text: encodeURIComponent(id) };
  return lastEncoded.text;
}

/** Reads the head of a job, or nothing when it is none that this build understands. */
export function decodeJobHead(read: (name: string) => string | undefined): JobHead | undefined {
  const head: Partial<Record<keyof JobHead, unknown>> = {};
  for (const field of jobFields) {
    const text = read(header[field]);
    if (text === undefined) continue;
    const value = readers[field](text);
    if (value === undefined) return undefined;
    head[field] = value;
  }
  return isWhole(head) ? head : undefined;
}

function isWhole(head: Partial<Record<keyof JobHead, unknown>>): head is JobHead {
  return requiredFields.every((field) => head[field] !== undefined);
}

const requiredFields = ["id", "kind", "shape", "remainingMs", "bodyBytes"] as const satisfies (keyof JobHead)[];

const decimal = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number);

const partHeader = z.object({ id: z.string().regex(tokenText), offset: decimal });

/** Which piece of which body a part message holds. */
export type PartHead = z.output<typeof partHeader>;

export function encodePartHead(head: PartHead): Headers {
  return { [header.id]: head.id, [header.offset]: String(head.offset) };
}

export function decodePartHead(read: (name: string) => string | undefined): PartHead | undefined {
  const parsed = partHeader.safeParse({ id: read(header.id), offset: read(header.offset) });
  return parsed.success ? parsed.data : undefined;
}
