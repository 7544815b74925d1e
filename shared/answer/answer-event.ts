import { z } from "zod";

export const finishReasons = ["stop", "length", "tool_calls", "content_filter"] as const;
export type FinishReason = (typeof finishReasons)[number];

/**
 * What a runtime says, in the order in which it says it. Runtime adapters yield these and nothing else;
 * `assembleAnswer` makes them regular, and the renderers beside it turn them into a shape that clients know.
 *
 * A tool call starts once, with its name, and its arguments follow in pieces of JSON text (one piece is fine).
 * `index` counts the calls of an answer from 0.
 */
export const answerEvent = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("text"), text: z.string() }),
  z.strictObject({ kind: z.literal("reasoning"), text: z.string() }),
  z.strictObject({
    kind: z.literal("tool-call-start"),
    index: z.int().nonnegative(),
    id: z.string().optional(),
    name: z.string(),
  }),
  z.strictObject({ kind: z.literal("tool-call-delta"), index: z.int().nonnegative(), arguments: z.string() }),
  z.strictObject({ kind: z.literal("finish"), reason: z.enum(finishReasons) }),
  z.strictObject({
    kind: z.literal("usage"),
    promptTokens: z.int().nonnegative(),
    completionTokens: z.int().nonnegative(),
    cachedTokens: z.int().nonnegative().optional(),
    reasoningTokens: z.int().nonnegative().optional(),
  }),
]);
export type AnswerEvent = z.infer<typeof answerEvent>;

export type Usage = Omit<Extract<AnswerEvent, { kind: "usage" }>, "kind">;
