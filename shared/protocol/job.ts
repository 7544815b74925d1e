import { z } from "zod";
import { modelId } from "../model/model.ts";
import { frameVersion } from "./frame.ts";
import { limits } from "./limits.ts";
import { tokenText } from "./identifiers.ts";

/** The kinds of jobs. An agent rejects a kind that it does not know or does not allow. */
export const jobKinds = ["models", "chat", "complete", "embed", "manage"] as const;
export type JobKind = (typeof jobKinds)[number];

const count = z.int().nonnegative();

/**
 * The metadata that routes and bounds a job. The body is the request itself; `sha256` is set when it follows in parts.
 */
const jobHead = z.object({
  id: z.string().regex(tokenText),
  kind: z.enum(jobKinds),
  model: modelId.optional(),
  /** The key of the request. A gateway's own jobs have none. */
  keyId: z.string().max(64).optional(),
  remainingMs: count,
  bodyBytes: count.max(limits.jobBodyBytesMax),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** True if the client gets the answer in one piece, so that the agent may send it in few large frames. */
  whole: z.boolean().optional(),
  /**
   * Bytes of the answer that the agent may send before the first credit. Undefined when the gateway gives no credit and
   * never attaches.
   */
  credit: count.optional(),
  /** Runtimes that support salts share their prompt cache only between jobs with the same salt. */
  cacheSalt: z.string().max(64).optional(),
  traceparent: z.string().max(100).optional(),
});
export type JobHead = z.infer<typeof jobHead>;

/** Identifies the job and the body offset of a part message. */
const partHead = z.object({ id: z.string().regex(tokenText), offset: count });
export type PartHead = z.infer<typeof partHead>;

/** The one header of a job or part message: the version of the wire and the head, as ASCII JSON. */
export const headHeader = "tl-head";

const versioned = z.object({ version: z.int() });

export type Headers = Readonly<Record<string, string>>;

export function encodeHead(head: JobHead | PartHead): Headers {
  const json = JSON.stringify({ version: frameVersion, ...head });
  return { [headHeader]: json.replaceAll(/[^ -~]/g, escaped) };
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export type DecodedHead<Head> =
  | { readonly outcome: "head"; readonly head: Head }
  /** The gateway speaks another version of the wire. */
  | { readonly outcome: "other-version"; readonly version: number }
  | { readonly outcome: "malformed" };

/** Decodes the head of a job from its header. */
export function decodeJobHead(text: string | undefined): DecodedHead<JobHead> {
  return decodeHead(jobHead, text);
}

export function decodePartHead(text: string | undefined): DecodedHead<PartHead> {
  return decodeHead(partHead, text);
}

function decodeHead<Head>(schema: z.ZodType<Head>, text: string | undefined): DecodedHead<Head> {
  let told: unknown;
  try {
    told = JSON.parse(text ?? "");
  } catch {
    return { outcome: "malformed" };
  }
  const version = versioned.safeParse(told).data?.version;
  if (version !== undefined && version !== frameVersion) return { outcome: "other-version", version };
  const head = schema.safeParse(told).data;
  return version === undefined || head === undefined ? { outcome: "malformed" } : { outcome: "head", head };
}
