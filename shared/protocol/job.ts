import { z } from "zod";
import { modelId } from "../model/model.ts";
import { limits } from "./limits.ts";
import { tokenText } from "./identifiers.ts";

/** The kinds of jobs. An agent rejects a kind that it does not know or does not allow. */
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
  cacheSalt: "tl-cache-salt",
  traceparent: "traceparent",
  offset: "tl-offset",
} as const;

/**
 * The metadata that routes and bounds a job. The body is the request itself; `sha256` is set when it follows in parts.
 */
export interface JobHead {
  readonly id: string;
  readonly kind: JobKind;
  readonly shape: string;
  readonly model?: string | undefined;
  /** The key of the request. A gateway's own jobs have none. */
  readonly keyId?: string | undefined;
  readonly remainingMs: number;
  readonly bodyBytes: number;
  readonly sha256?: string | undefined;
  readonly responseId?: string | undefined;
  readonly createdSeconds?: number | undefined;
  readonly includeUsage?: boolean | undefined;
  /**
   * Bytes of the answer that the agent may send before the first credit. Undefined when the gateway gives no credit and
   * never attaches.
   */
  readonly credit?: number | undefined;
  /** Runtimes that support salts share their prompt cache only between jobs with the same salt. */
  readonly cacheSalt?: string | undefined;
  readonly traceparent?: string | undefined;
}

/** Marks a header whose value is invalid for its field. */
const wrong = Symbol("wrong");
type Read<Value> = Value | undefined | typeof wrong;

const digest = /^[0-9a-f]{64}$/;
const digits = /^\d{1,15}$/;

function matching(text: string | undefined, pattern: RegExp): Read<string> {
  return text === undefined || pattern.test(text) ? text : wrong;
}

function noLongerThan(text: string | undefined, characters: number): Read<string> {
  return text === undefined || text.length <= characters ? text : wrong;
}

function decimalOf(text: string | undefined, most = Infinity): Read<number> {
  if (text === undefined) return undefined;
  const count = digits.test(text) ? Number(text) : Infinity;
  return count <= most && count !== Infinity ? count : wrong;
}

function kindOf(text: string | undefined): Read<JobKind> {
  return text === undefined ? undefined : (jobKinds.find((kind) => kind === text) ?? wrong);
}

function switchOf(text: string | undefined): Read<boolean> {
  return text === undefined ? undefined : text === "1" ? true : text === "0" ? false : wrong;
}

let lastModel: { readonly text: string; readonly id: string | undefined } | undefined;

/** Decodes a model id. Caches the last one: most jobs of a machine name the same model as the job before. */
function modelOf(text: string | undefined): Read<string> {
  if (text === undefined) return undefined;
  if (lastModel?.text !== text) lastModel = { text, id: decodedModel(text) };
  return lastModel.id ?? wrong;
}

function decodedModel(text: string): string | undefined {
  try {
    return modelId.safeParse(decodeURIComponent(text)).data;
  } catch {
    return undefined;
  }
}

export type Headers = Readonly<Record<string, string>>;

/** Encodes the head of a job. Written field by field for speed: every request has one. */
export function encodeJobHead(head: JobHead): Headers {
  const { model, keyId, sha256, responseId, createdSeconds, includeUsage, credit, cacheSalt, traceparent } = head;
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
  if (cacheSalt !== undefined) headers[header.cacheSalt] = cacheSalt;
  if (traceparent !== undefined) headers[header.traceparent] = traceparent;
  return headers;
}

let lastEncoded: { readonly id: string; readonly text: string } | undefined;

function encodedModel(id: string): string {
  if (lastEncoded?.id !== id) lastEncoded = { id, text: encodeURIComponent(id) };
  return lastEncoded.text;
}

/**
 * Decodes the head of a job. Returns undefined when this build does not understand it. Written field by field for
 * speed: every request has one.
 */
export function decodeJobHead(read: (name: string) => string | undefined): JobHead | undefined {
  const id = matching(read(header.id), tokenText);
  const kind = kindOf(read(header.kind));
  const shape = noLongerThan(read(header.shape), 40);
  const model = modelOf(read(header.model));
  const keyId = noLongerThan(read(header.keyId), 64);
  const remainingMs = decimalOf(read(header.remainingMs));
  const bodyBytes = decimalOf(read(header.bodyBytes), limits.jobBodyBytesMax);
  const sha256 = matching(read(header.sha256), digest);
  const responseId = noLongerThan(read(header.responseId), 100);
  const createdSeconds = decimalOf(read(header.createdSeconds));
  const includeUsage = switchOf(read(header.includeUsage));
  const credit = decimalOf(read(header.credit));
  const cacheSalt = noLongerThan(read(header.cacheSalt), 64);
  const traceparent = noLongerThan(read(header.traceparent), 100);
  if (id === undefined || kind === undefined || shape === undefined) return undefined;
  if (remainingMs === undefined || bodyBytes === undefined) return undefined;
  if (id === wrong || kind === wrong || shape === wrong || model === wrong || keyId === wrong) return undefined;
  if (remainingMs === wrong || bodyBytes === wrong || sha256 === wrong || responseId === wrong) return undefined;
  if (createdSeconds === wrong || includeUsage === wrong || credit === wrong) return undefined;
  if (cacheSalt === wrong || traceparent === wrong) return undefined;
  return {
    id,
    kind,
    shape,
    model,
    keyId,
    remainingMs,
    bodyBytes,
    sha256,
    responseId,
    createdSeconds,
    includeUsage,
    credit,
    cacheSalt,
    traceparent,
  };
}

const decimal = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number);

const partHeader = z.object({ id: z.string().regex(tokenText), offset: decimal });

/** Identifies the job and the body offset of a part message. */
export type PartHead = z.output<typeof partHeader>;

export function encodePartHead(head: PartHead): Headers {
  return { [header.id]: head.id, [header.offset]: String(head.offset) };
}

export function decodePartHead(read: (name: string) => string | undefined): PartHead | undefined {
  const parsed = partHeader.safeParse({ id: read(header.id), offset: read(header.offset) });
  return parsed.success ? parsed.data : undefined;
}
