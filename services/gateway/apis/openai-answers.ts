import { z } from "zod";
import { tokenLogprobs } from "#shared/protocol/answer-events.ts";
import { count, text } from "./answer-parts.ts";

// Answers, and parts of them, that several APIs have as OpenAI does.

export const answeringModel = text.describe("The model that answered.");

/** The log probability of a token, and the likeliest alternatives to it. */
export const likeliest = "The tokens that were likeliest in its place: as many as `top_logprobs` asked for.";
export const likelyToken = tokenLogprobs.element.omit({ top_logprobs: true }).strip();
export const tokenLogprob = likelyToken.extend({ top_logprobs: z.array(likelyToken).describe(likeliest) });

export const tokenUsage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count }).optional(),
  completion_tokens_details: z.object({ reasoning_tokens: count }).optional(),
  cost: z.number().nonnegative().optional(),
});

/** Returns the schema of a list, which is an answer that is no text. */
export const listOf = <Fields extends z.ZodRawShape>(fields: Fields) =>
  z.object({
    object: z.literal("list"),
    ...fields,
    model: answeringModel,
    usage: tokenUsage.pick({ prompt_tokens: true, total_tokens: true }),
  });

/** Returns the schema of an answer that has choices. */
export const completionOf = (object: string, choice: z.ZodType) =>
  z.object({
    id: z.string(),
    object: z.literal(object),
    created: count,
    model: answeringModel,
    choices: z.array(choice),
    usage: tokenUsage,
  });

/** Returns the schema of one chunk of such an answer. */
export const chunkOf = (object: string, choice: z.ZodType) =>
  completionOf(object, choice).extend({
    choices: z.array(choice).describe("One choice a chunk; none in the chunk of the usage."),
    usage: tokenUsage.nullish(),
  });
export const endOfChunks = "The reason for its end, in its last chunk; null before.";

/** The fields of an error that are the same in all APIs. */
export const causes = { param: z.string().nullable(), code: z.string().nullable() };

/** The body of an error in OpenAI's form, as an answer and inside a stream. */
export const error = z.object({ error: z.object({ message: text, type: text, ...causes }) });
