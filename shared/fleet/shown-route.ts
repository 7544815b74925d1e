import { z } from "zod";
import { modelId } from "../model/model.ts";
import { machineName } from "../protocol/identifiers.ts";

const count = z.int().nonnegative();

/** Reasons for a machine's rank. */
export const rankReasons = [
  "breaker",
  "contradicts",
  "suspect",
  "small_window",
  "full",
  "busy",
  "slower",
  "warm",
  "drawn",
] as const;
export type RankReason = (typeof rankReasons)[number];

/** Reasons why a request is not offered to a machine. */
export const leftOutReasons = [
  "broker_away",
  "offline",
  "draining",
  "denied",
  "no_runtime",
  "no_model",
  "not_permitted",
  "unable",
  "tried",
] as const;
export type LeftOutReason = (typeof leftOutReasons)[number];

/** The ranking of one machine for a request of a model, in the format for operators. */
export const shownRouteMachine = z.object({
  machine: machineName,
  rank: z.int().positive().nullable().describe("In which place it is asked; null when it is not asked."),
  reason: z
    .enum([...rankReasons, ...leftOutReasons])
    .nullable()
    .describe("Null when nothing is against it."),
  why: z.string().nullable().describe("The same in words."),
  slots: count,
  free_slots: count,
  queued: count,
  has_room: z.boolean().describe("Whether it has a slot, or a place in its queue, for one more."),
  context_window: count.nullable().describe("Of the model there; null where it is not offered."),
  first_token_ms: count.nullable().describe("How long its first tokens took lately; null until one was measured here."),
  tokens_per_second: z.number().nonnegative().nullable().describe("How fast it was after that."),
});
export type ShownRouteMachine = z.infer<typeof shownRouteMachine>;

export const shownRoute = z.object({
  object: z.literal("route"),
  model: modelId,
  refusal: z
    .object({ code: z.string(), message: z.string() })
    .nullable()
    .describe("What a request would end in at once; null when there is a machine to ask."),
  machines: z.array(shownRouteMachine).describe("Those that are asked in their order, and then the others."),
});
export type ShownRoute = z.infer<typeof shownRoute>;
