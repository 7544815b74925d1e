import { z } from "zod";
import { finishReasons, usage } from "./answer-events.ts";
import { epoch, tokenText } from "./identifiers.ts";
import { limits } from "./limits.ts";

const count = z.int().nonnegative();

/** The names and indices that lead to a value in JSON. */
export type JsonPath = readonly (string | number)[];

export const jobStates = ["receiving", "queued", "loading", "prefill", "running", "ended"] as const;
export const jobState = z.enum(jobStates);
export type JobState = z.infer<typeof jobState>;

/** The fields of a resumable answer that its request does not tell: its id, and when it was begun. */
export const resumable = z.object({ answer: z.string().max(100), created: count });
export type Resumable = z.infer<typeof resumable>;

/** The facts of an answer for the gateway at which it is resumed. */
const resumedAnswer = resumable.extend({
  model: z.string(),
  /** The tokens of the answer that the gateways before have counted. */
  countedTokens: count,
});
export type ResumedAnswer = z.infer<typeof resumedAnswer>;

/** The agent has accepted the job. Also the answer to a duplicate job id, which does not run twice. */
export const acceptPayload = z.object({
  state: jobState,
  position: count.optional(),
  resumed: resumedAnswer.optional(),
});
export type AcceptPayload = z.infer<typeof acceptPayload>;

/** The agent refuses the job, and has not started any of it. */
export const rejectPayload = z.object({
  reason: z.enum(["busy", "draining", "unknown_model", "unsupported", "malformed"]),
  message: z.string().max(1_000),
});
export type RejectPayload = z.infer<typeof rejectPayload>;

/** The agent has received the body up to this offset. */
export const partAckPayload = z.object({ received: count });

export const endPayload = z.object({
  finishReason: z.enum(finishReasons).nullable(),
  usage: usage.nullable(),
  timings: z.object({ queuedMs: z.number(), firstTokenMs: z.number().nullable(), totalMs: z.number() }),
});
export type EndPayload = z.infer<typeof endPayload>;

export const faultMessageCharactersMax = 2_000;
export const faultReasonCharactersMax = 300;
export const retryAfterSecondsMax = 600;

/** A failed job. The code is one of `faultCodes`; a code that this build does not know becomes `upstream_error`. */
export const faultPayload = z.object({
  code: z.string().max(100),
  message: z.string().max(faultMessageCharactersMax),
  param: z.string().max(500).optional(),
  /** The cause in the agent's own words, for operators and never for clients. An overlong reason is dropped. */
  reason: z.string().max(faultReasonCharactersMax).optional().catch(undefined),
  /** When the request may succeed, if its fault depends on it. */
  retryAfterSeconds: z.int().positive().max(retryAfterSecondsMax).optional().catch(undefined),
  /** True if the connection to the runtime broke during this job, as when a runtime crashes. */
  runtimeDied: z.boolean().optional(),
  /** The request from which a job moved, if that one resumed the answer too: another request may follow it there by now. */
  movedFrom: z.string().regex(tokenText).optional(),
  /** The tokens of a job that moved up to which the gateway before counts, and from which on the next one does. */
  countedTokens: count.optional(),
  usage: usage.nullable().optional(),
});
export type FaultPayload = z.infer<typeof faultPayload>;

/**
 * One row of a beat: job, state, position in the queue, tokens of the answer so far, last sequence sent, credit limit
 * known. A beat carries the agent's epoch, and a row for each job that the agent holds for the receiving gateway. The
 * agent does not have a job without a row.
 */
const beatRow = z.tuple([z.string().regex(tokenText), jobState, count, count, count, count]);
export type BeatRow = z.infer<typeof beatRow>;

/** The model that an agent is loading for the jobs that wait for it. */
export const loadNews = z.object({ model: z.string(), percent: count.max(100), leftMs: count });
export type LoadNews = z.infer<typeof loadNews>;

export const beatPayload = z.object({
  epoch,
  rows: z.array(beatRow).max(limits.jobsPerAgentMax),
  load: loadNews.optional(),
});
export type BeatPayload = z.infer<typeof beatPayload>;

export function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/**
 * Parses a JSON payload against its schema. Returns undefined when it does not match: other processes are not trusted.
 */
export function decodeJson<Schema extends z.ZodType>(schema: Schema, bytes: Uint8Array): z.output<Schema> | undefined {
  return schema.safeParse(jsonIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())).data;
}

/** Parses a text as JSON. Returns undefined on a syntax error. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses the bytes as JSON; throws on a syntax error. */
export function readJson(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
}
