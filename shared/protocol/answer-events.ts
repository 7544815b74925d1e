import { z } from "zod";

export const finishReasons = ["stop", "length", "tool_calls", "content_filter"] as const;
export type FinishReason = (typeof finishReasons)[number];

const count = z.int().nonnegative();

/** The most tokens that a machine may report of one answer. */
export const tokenCountMax = 2 ** 31 - 1;
const tokens = count.max(tokenCountMax);

export const usage = z.object({
  promptTokens: tokens,
  completionTokens: tokens,
  cachedTokens: tokens.optional(),
  reasoningTokens: tokens.optional(),
  /** The seconds of a recording, rounded up, where the runtime reports them in place of tokens. */
  seconds: tokens.optional(),
});
export type Usage = z.infer<typeof usage>;

const tokenLogprob = z.strictObject({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullable() });

/** Logprobs of each token of a text and of its alternatives, in OpenAI's format. */
export const tokenLogprobs = z.array(tokenLogprob.extend({ top_logprobs: z.array(tokenLogprob) }));
export type TokenLogprobs = z.infer<typeof tokenLogprobs>;

/** Bounds the answers to one request. */
export const choicesMax = 128;
/** The choice that an event belongs to, when a request asks for several (`n`). Undefined means the first. */
const choice = count.max(choicesMax - 1).optional();

/**
 * One event of a runtime's answer, in the runtime's order. Runtime adapters emit only these. `AnswerAssembly`
 * normalises them, and the renderers turn them into a shape that clients know.
 *
 * A tool call starts once, with its name. Its arguments follow in pieces of JSON text (one piece is fine). `index`
 * counts the tool calls of an answer from 0. An embedding is one vector for each text of the request, scores
 * are the relevances of its documents. Audio is a piece of a spoken answer, with its media type where the runtime told it.
 */
export const answerEvent = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("text"), choice, text: z.string(), logprobs: tokenLogprobs.optional() }),
  z.strictObject({ kind: z.literal("reasoning"), choice, text: z.string() }),
  z.strictObject({
    kind: z.literal("tool-call-start"),
    choice,
    index: count,
    id: z.string().optional(),
    name: z.string(),
  }),
  z.strictObject({ kind: z.literal("tool-call-delta"), choice, index: count, arguments: z.string() }),
  z.strictObject({
    kind: z.literal("finish"),
    choice,
    reason: z.enum(finishReasons),
    /** The stop string that ended the answer, as far as the runtime tells. Only for a job whose head has `tellsStop`. */
    stop: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal("embedding"), index: count, vector: z.array(z.number()) }),
  z.strictObject({ kind: z.literal("scores"), scores: z.array(z.number()) }),
  z.strictObject({
    kind: z.literal("audio"),
    type: z.string().optional(),
    bytes: z.custom<Uint8Array>((bytes) => bytes instanceof Uint8Array),
  }),
  z.strictObject({ kind: z.literal("usage"), ...usage.shape }),
]);
export type AnswerEvent = z.infer<typeof answerEvent>;
