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

const decimal = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number);

const jobHeader = z.object({
  id: z.string().regex(tokenText),
  kind: z.enum(jobKinds),
  shape: z.string().max(40),
  model: modelId.optional(),
  /** The key that asked; a gateway asks for itself without one. */
  keyId: z.string().max(64).optional(),
  remainingMs: decimal,
  bodyBytes: decimal.refine((bytes) => bytes <= limits.jobBodyBytesMax),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  responseId: z.string().max(100).optional(),
  createdSeconds: decimal.optional(),
  includeUsage: z
    .enum(["0", "1"])
    .transform((flag) => flag === "1")
    .optional(),
  /**
   * How many bytes of the answer may be sent before the first credit. A job that names none comes from a gateway that
   * gives no credit and attaches to nothing.
   */
  credit: decimal.optional(),
  traceparent: z.string().max(100).optional(),
});

/** What routes and bounds a job. The body is the request itself; `sha256` is set when it follows in parts. */
export type JobHead = z.output<typeof jobHeader>;

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

export function encodeJobHead(head: JobHead): Headers {
  const headers: Record<string, string> = {};
  for (const field of jobFields) {
    const value = head[field];
    if (value === undefined) continue;
    headers[header[field]] =
      typeof value === "boolean" ? (value ? "1" : "0") : field === "model" ? encodeURIComponent(value) : String(value);
  }
  return headers;
}

/** Reads the head of a job, or nothing when it is none that this build understands. */
export function decodeJobHead(read: (name: string) => string | undefined): JobHead | undefined {
  const given: Record<string, string> = {};
  for (const field of jobFields) {
    const value = read(header[field]);
    if (value !== undefined) given[field] = value;
  }
  try {
    if (given["model"] !== undefined) given["model"] = decodeURIComponent(given["model"]);
  } catch {
    return undefined;
  }
  const parsed = jobHeader.safeParse(given);
  return parsed.success ? parsed.data : undefined;
}

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
