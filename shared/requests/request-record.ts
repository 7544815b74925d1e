import { z } from "zod";
import { rankReasons } from "../fleet/shown-fleet.ts";

const ms = z.number().nonnegative();
const tokens = z.number().nonnegative();
/** A part that is left out is zero. Most parts are, and there are many records. */
const part = z.number().nonnegative().default(0);

/** The expected cost of a request on a machine when it was offered there, by its parts, in milliseconds. */
const triedCost = z.object({
  totalMs: ms,
  loadMs: part,
  slotMs: part,
  backlogMs: part,
  promptMs: part,
  answerMs: part,
  delayMs: part,
  /** Tokens of other prompts that the machine had still to compute. */
  backlogTokens: part,
});

/** One machine that was offered the request, and why it was that one. */
const triedMachine = z.object({
  machine: z.string(),
  /** The model by its id on that machine. */
  model: z.string(),
  /** When it was offered the request, from the request's arrival. */
  atMs: ms,
  reason: z.enum(rankReasons).optional(),
  cost: triedCost,
  cachedTokens: part,
  /** The machines that came next in the ranking, the nearest first. */
  others: z.array(z.object({ machine: z.string(), totalMs: ms, reason: z.enum(rankReasons).optional() })).default([]),
  /** The tokens of the answer that its client had by then, if the machine was to go on with it. */
  fromTokens: tokens.optional(),
  /** The code with which the machine refused the request or failed. Absent for the machine that answered. */
  code: z.string().optional(),
});
export type TriedMachine = Readonly<z.infer<typeof triedMachine>>;

/** The one who ended a request: the machine with its answer or its fault, the client, the key's limits or revocation, an operator, or the gateway. */
export const requestEnders = ["machine", "client", "key", "operator", "gateway"] as const;

/**
 * The record of one ended request of a proven key. It has no text of the prompt or of the answer. Times are in
 * milliseconds from the arrival of the request's head.
 */
export const requestRecord = z.object({
  id: z.string(),
  /** When the request arrived, by the clock of its gateway. */
  at: z.number(),
  keyId: z.string(),
  address: z.string(),
  /** The client's User-Agent. */
  agent: z.string().optional(),
  /** The API, by its path. */
  path: z.string(),
  streamed: z.boolean(),
  /** The model as the client named it. Absent if the request ended before it was read. */
  asked: z.string().optional(),
  /** The machines that were offered the request, the latest last. */
  tried: z.array(triedMachine),
  /** Earlier ones that `tried` leaves out (`triedMax`). */
  triedBefore: z.number().optional(),
  /** The machine that took the request, and the model by its id there. */
  machine: z.string().optional(),
  model: z.string().optional(),
  status: z.number(),
  /** `ok`, or the code of the fault in which the request ended. */
  code: z.string(),
  endedBy: z.enum(requestEnders),
  acceptedMs: ms.optional(),
  /** For how long it waited on its machine until its model was loaded. */
  loadWaitMs: ms.optional(),
  firstTokenMs: ms.optional(),
  totalMs: ms,
  promptTokens: tokens,
  cachedTokens: tokens.optional(),
  completionTokens: tokens,
  /** In millionths of the currency; absent where the model has no price. */
  cost: z.int().nonnegative().optional(),
  /** The limit of the key that refused the request or ended its answer. */
  limit: z.string().optional(),
  /** The machine that had the answer of this `Idempotency-Key` before and has lost it, so that it was made anew. */
  anewAfter: z.string().optional(),
  /** Refusals of the same key just before, which have no record of their own (`refusalsRecordedPerSecond`). */
  refusedBefore: z.number().optional(),
  /** The id of its trace, if it was traced. */
  trace: z.string().optional(),
});
export type RequestRecord = Readonly<z.infer<typeof requestRecord>>;
export type WrittenRecord = Readonly<z.input<typeof requestRecord>>;

/** The requests to find. All that are named must hold. */
export interface RequestQuery {
  readonly failed?: boolean | undefined;
  /** The keys of which one must be the request's. */
  readonly keyIds?: readonly string[] | undefined;
  /** `ok`, or the code of a fault. */
  readonly code?: string | undefined;
  /** A part of the model as it was asked for, or as its machine names it; in capitals or not. */
  readonly model?: string | undefined;
  /** A part of the API's path. */
  readonly api?: string | undefined;
  /** Only requests that took longer than this. */
  readonly longerMs?: number | undefined;
  /** A machine that was offered the request. */
  readonly machine?: string | undefined;
  /** Only requests that arrived at this time or later, and before that one. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

export function matches(record: RequestRecord, query: RequestQuery): boolean {
  const { failed, code, keyIds, model, api, machine, longerMs = -1, sinceMs = -Infinity, untilMs = Infinity } = query;
  const named = model?.toLowerCase();
  const names = [record.asked, record.model];
  return (
    (failed === undefined || failed === (record.code !== "ok")) &&
    (code === undefined || code === record.code) &&
    (keyIds === undefined || keyIds.includes(record.keyId)) &&
    (named === undefined || names.some((each) => each?.toLowerCase().includes(named))) &&
    (api === undefined || record.path.includes(api)) &&
    (machine === undefined || record.tried.some((tried) => tried.machine === machine)) &&
    record.totalMs > longerMs &&
    record.at >= sinceMs &&
    record.at < untilMs
  );
}

/** Returns the tokens a second of an answer after its first token; undefined for an answer in one piece. */
export function tokensPerSecond(record: RequestRecord): number | undefined {
  const { firstTokenMs, totalMs, completionTokens, streamed } = record;
  if (!streamed || firstTokenMs === undefined || completionTokens < 2 || totalMs <= firstTokenMs) return undefined;
  return ((completionTokens - 1) * 1_000) / (totalMs - firstTokenMs);
}
