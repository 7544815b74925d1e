import { z } from "zod";
import { finishReasons } from "../answer/answer-event.ts";
import { epoch } from "./epoch.ts";
import { limits } from "./limits.ts";
import { tokenText } from "./token.ts";

const count = z.int().nonnegative();

export const jobStates = ["receiving", "queued", "loading", "prefill", "running", "ended"] as const;
export const jobState = z.enum(jobStates);
export type JobState = z.infer<typeof jobState>;

/** The job is the agent's now. Also the answer to a job id that it has already: it is not run twice. */
export const acceptPayload = z.object({ state: jobState, position: count.optional() });
export type AcceptPayload = z.infer<typeof acceptPayload>;

/** The agent does not take the job, and nothing of it was begun. */
export const rejectPayload = z.object({
  reason: z.enum(["busy", "draining", "unknown_model", "unsupported", "malformed"]),
  message: z.string().max(1_000),
});
export type RejectPayload = z.infer<typeof rejectPayload>;

/** Everything below this offset of the body has arrived. */
export const partAckPayload = z.object({ received: count });

export const usage = z.object({
  promptTokens: count,
  completionTokens: count,
  cachedTokens: count.optional(),
  reasoningTokens: count.optional(),
});

export type Usage = z.infer<typeof usage>;

export const endPayload = z.object({
  finishReason: z.enum(finishReasons).nullable(),
  usage: usage.nullable(),
  timings: z.object({ queuedMs: z.number(), firstTokenMs: z.number().nullable(), totalMs: z.number() }),
});
export type EndPayload = z.infer<typeof endPayload>;

export const faultMessageCharactersMax = 2_000;

/** The code is one of `faultCodes`; one that this build does not know is shown as `upstream_error`. */
export const faultPayload = z.object({
  code: z.string().max(100),
  message: z.string().max(faultMessageCharactersMax),
  param: z.string().max(500).optional(),
  /** The runtime broke off while it worked on this job, as one does that dies. */
  runtimeDied: z.boolean().optional(),
  usage: usage.nullable().optional(),
});
export type FaultPayload = z.infer<typeof faultPayload>;

/**
 * Which boot speaks, and one row for each job that it holds for the gateway it writes to:
 * job, state, place in the queue, progress counter, last sequence sent, credit limit known.
 * A job that has no row is not there.
 */
const beatRow = z.tuple([z.string().regex(tokenText), jobState, count, count, count, count]);
export type BeatRow = z.infer<typeof beatRow>;

export const beatPayload = z.object({ epoch, rows: z.array(beatRow).max(limits.jobsPerAgentMax) });
export type BeatPayload = z.infer<typeof beatPayload>;

export function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** Reads a JSON payload against its schema, or nothing when it is not that: what other processes send is not trusted. */
export function decodeJson<Schema extends z.ZodType>(schema: Schema, bytes: Uint8Array): z.output<Schema> | undefined {
  try {
    const parsed = schema.safeParse(readJson(bytes));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** What the bytes say as JSON; throws when they say nothing. */
export function readJson(bytes: Uint8Array): unknown {
  const readable = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return JSON.parse(readable.toString());
}
