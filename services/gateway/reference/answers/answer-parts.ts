import { z } from "zod";
import { finishReasons, tokenLogprobs } from "#shared/answer/answer-event.ts";

/** The fields that several kinds of answer share. */
export const answerId = z.string().describe("The id of this answer, the same in all chunks of a stream.");
export const created = z.int().nonnegative().describe("When the answer was begun, in seconds since 1970.");
export const answeringModel = z.string().describe("The model that answered.");
export const choiceIndex = z.int().nonnegative().describe("Which of the answers this is of, from 0.");

/** The reason why an answer ended. */
export const finishReason = z
  .enum(finishReasons)
  .describe(
    "Why the answer ended: the model came to an end or to a text of `stop`; the longest length was reached; it calls tools; or its runtime withheld the rest.",
  );

export const textFinishReason = finishReason
  .exclude(["tool_calls"])
  .describe(
    "Why the text ended: the model came to an end or to a text of `stop`; the longest length was reached; or its runtime withheld the rest.",
  );

/** The log probability of a token, and the likeliest alternatives to it. */
export const tokenLogprob = tokenLogprobs.element;

export const logprobs = z.object({
  content: tokenLogprobs.describe("One entry for each token of the text."),
  refusal: z.null().describe("Always null: a refusal is text like any other here."),
});

export const tokenUsage = z.object({
  prompt_tokens: z.int().nonnegative().describe("The tokens of the prompt."),
  completion_tokens: z.int().nonnegative().describe("The tokens of all answers, thoughts included."),
  total_tokens: z.int().nonnegative().describe("Both together."),
  prompt_tokens_details: z
    .object({
      cached_tokens: z
        .int()
        .nonnegative()
        .describe("How many of the prompt's tokens the runtime still had from before."),
    })
    .optional()
    .describe("There where the runtime tells it."),
  completion_tokens_details: z
    .object({ reasoning_tokens: z.int().nonnegative().describe("How many of the answers' tokens were thoughts.") })
    .optional()
    .describe("There where the runtime tells it."),
});

export const streamedUsage = tokenUsage
  .nullish()
  .describe("Only with `stream_options.include_usage`: null in every chunk but the last, which has it and no choices.");
