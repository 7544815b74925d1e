import { z } from "zod";
import {
  answerId,
  answeringModel,
  choiceIndex,
  created,
  streamedUsage,
  textFinishReason,
  tokenUsage,
} from "./answer-parts.ts";

/** The log probabilities of a text's tokens, in parallel lists. */
export const textLogprobs = z.object({
  tokens: z.array(z.string()).describe("The tokens of the text."),
  token_logprobs: z.array(z.number()).describe("How likely each of them was, as a logarithm."),
  top_logprobs: z
    .array(z.record(z.string(), z.number()))
    .describe("For each of them the tokens that were likeliest in its place, and how likely."),
  text_offset: z.array(z.int().nonnegative()).describe("Where each of them begins in the text, in characters."),
});

const object = z.literal("text_completion").describe("What this is, streamed or not.");
const likelihoods = textLogprobs.nullable().describe("How likely the tokens were; null unless `logprobs` was given.");

/** A legacy completion that is not streamed. */
export const textCompletion = z.object({
  id: answerId,
  object,
  created,
  model: answeringModel,
  choices: z
    .array(
      z.object({
        text: z.string().describe("What follows the prompt; with `echo` behind the prompt itself."),
        index: choiceIndex,
        logprobs: likelihoods,
        finish_reason: textFinishReason,
      }),
    )
    .describe("The answers: `n` to the first prompt, then `n` to the next."),
  usage: tokenUsage.describe("What the request used."),
});

/** One event of a streamed legacy completion. */
export const textCompletionChunk = z.object({
  id: answerId,
  object,
  created,
  model: answeringModel,
  choices: z
    .array(
      z.object({
        text: z.string().describe("The next piece of the text."),
        index: choiceIndex,
        logprobs: likelihoods,
        finish_reason: textFinishReason.nullable().describe("Why the text ended, in its last chunk; null before."),
      }),
    )
    .describe("One choice a chunk; none in the chunk of the usage."),
  usage: streamedUsage,
});
