import { z } from "zod";
import { modelId, modelIdCharactersMax } from "./model.ts";
import { jsonIn, resumable } from "./frame-payload.ts";
import { frameVersion } from "./frame.ts";
import { limits } from "./limits.ts";
import { tokenText, epoch } from "./identifiers.ts";
import { keepsMax } from "./presence.ts";

/** The kinds of jobs. An agent rejects a kind that it does not know or does not allow. */
export const jobKinds = ["models", "chat", "count", "complete", "embed", "rerank", "media", "manage"] as const;
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
  /** Set if the answer can be resumed: the agent keeps it from its beginning on, and tells this to whoever resumes it. */
  resumable: resumable.optional(),
  /** True if the client is told which stop string ended the answer. Older gateways take no such event. */
  tellsStop: z.boolean().optional(),
});
export type JobHead = z.infer<typeof jobHead>;

/** Identifies the job and the body offset of a part message. */
const partHead = z.object({ id: z.string().regex(tokenText), offset: count });
export type PartHead = z.infer<typeof partHead>;

/** The one header of a job or part message: the version of the wire and the head, as ASCII JSON. */
export const headHeader = "tl-head";

export type Headers = Readonly<Record<string, string>>;

export function encodeHead(head: JobHead | PartHead): Headers {
  const json = JSON.stringify({ version: frameVersion, ...head });
  const ascii = json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return { [headHeader]: ascii };
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
  const json = jsonIn(text ?? "");
  const version: unknown = Object(json)["version"];
  if (typeof version !== "number" || !Number.isSafeInteger(version)) return { outcome: "malformed" };
  if (version !== frameVersion) return { outcome: "other-version", version };
  const head = schema.safeParse(json).data;
  return head === undefined ? { outcome: "malformed" } : { outcome: "head", head };
}

const token = z.string().regex(tokenText);
const offset = z.int().nonnegative();
const ofJobs = z.array(z.tuple([token, count])).max(limits.jobsPerAgentMax);

/**
 * A gateway's message to an agent about the jobs that it sent. A control travels on the same connection as the job, so
 * it cannot overtake the job. It carries a reply subject, so that the broker answers 503 when the agent is gone. All
 * kinds except `lease` and `fence` may be repeated or lost without harm.
 */
export const control = z.discriminatedUnion("kind", [
  /** Stop the job; its client no longer wants the answer. */
  z.object({ kind: z.literal("cancel"), job: token, reason: z.enum(["client_closed", "slow_client", "gave_up"]) }),
  /** Send the frames from this number on to the reply subject of this message, which owns the job from now on. */
  z.object({
    kind: z.literal("attach"),
    job: token,
    from: z.int().min(1),
    keyId: z.string(),
    credit: offset,
    /** Names the request by which a client resumes the answer. The agent accepts it first, and tells the gateway before. */
    resumes: token.optional(),
    /** The tokens that this gateway counts for an earlier request, which followed the answer here until now. */
    countedTokens: count.optional(),
  }),
  /** The client has read `taken` bytes, and the agent may send up to `limit`, both counted from the start. */
  z.object({ kind: z.literal("credit"), job: token, taken: offset, limit: offset }),
  /** Asks whether the agent still has the job. The agent answers with a beat at once. */
  z.object({ kind: z.literal("probe"), job: token }),
  /**
   * The gateway lives and waits for its jobs. `taken` lists the jobs whose clients read on, with the bytes read. That
   * extends the credit by as much. A beat with the new credit limit shows that the agent understood it. `counted` lists
   * resumable answers, with the tokens up to which this gateway counts them if another one goes on from now on.
   */
  z.object({
    kind: z.literal("lease"),
    gateway: token,
    taken: ofJobs.optional(),
    counted: ofJobs.optional(),
  }),
  /** A newer boot of this machine exists; the receiving agent must stop. */
  z.object({ kind: z.literal("fence"), epoch }),
  /** The machine is to keep these models in memory, and no others. Its owner allows that or not. */
  z.object({ kind: z.literal("keep"), models: z.array(z.string().max(modelIdCharactersMax)).max(keepsMax) }),
  /** The gateway has received the terminal frames of these jobs. */
  z.object({ kind: z.literal("finish"), jobs: z.array(token).min(1).max(1_000), gateway: token.optional() }),
]);
export type Control = z.infer<typeof control>;
export type Attach = Extract<Control, { kind: "attach" }>;
