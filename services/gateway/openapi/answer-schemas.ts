import { z } from "zod";
import { finishReasons, tokenLogprobs } from "#shared/protocol/answer-events.ts";
import { model } from "#shared/model/model.ts";
import { toolCall } from "#shared/protocol/job-bodies.ts";

/** The fields that several kinds of answer share. */
const answerId = z.string().describe("The id of this answer, the same in all chunks of a stream.");
const created = z.int().nonnegative().describe("When the answer was begun, in seconds since 1970.");
export const answeringModel = z.string().describe("The model that answered.");
const choiceIndex = z.int().nonnegative().describe("Which of the answers this is of, from 0.");

/** The reason why an answer ended. */
const finishReason = z
  .enum(finishReasons)
  .describe(
    "Why the answer ended: the model came to an end or to a text of `stop`; the longest length was reached; it calls tools; or its runtime withheld the rest.",
  );

const textFinishReason = finishReason
  .exclude(["tool_calls"])
  .describe(
    "Why the text ended: the model came to an end or to a text of `stop`; the longest length was reached; or its runtime withheld the rest.",
  );

/** The log probability of a token, and the likeliest alternatives to it. */
export const tokenLogprob = tokenLogprobs.element;

const logprobs = z.object({
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

const streamedUsage = tokenUsage
  .nullish()
  .describe("Only with `stream_options.include_usage`: null in every chunk but the last, which has it and no choices.");

const reasoning = z.string().describe("What the model thought before it answered; never empty.");
const sameReasoning = z.string().describe("The same once more, for clients that know it by this name.");
const refusal = z.null().describe("Always null: a refusal is text like any other here.");

/** A chat completion that is not streamed. */
export const chatCompletion = z.object({
  id: answerId,
  object: z.literal("chat.completion").describe("What this is."),
  created,
  model: answeringModel,
  choices: z
    .array(
      z.object({
        index: choiceIndex,
        message: z
          .object({
            role: z.literal("assistant").describe("Who speaks."),
            content: z.string().nullable().describe("The text; null where the model said nothing but calls tools."),
            refusal,
            reasoning_content: reasoning.optional(),
            reasoning: sameReasoning.optional(),
            tool_calls: z.array(toolCall).optional().describe("The tools that the model calls, in its order."),
          })
          .describe("What the model said."),
        logprobs: logprobs.nullable().describe("How likely the tokens were; null unless `logprobs` was true."),
        finish_reason: finishReason,
      }),
    )
    .describe("The answers: as many as `n` said."),
  usage: tokenUsage.describe("What the request used."),
});

const calledInPieces = z.object({
  index: z.int().nonnegative().describe("Which call of the answer this is of, from 0."),
  id: z.string().optional().describe("The id of the call, once at its beginning."),
  type: z.literal("function").optional().describe("What is called, once at the call's beginning."),
  function: z
    .object({
      name: z.string().optional().describe("The name of the function, once at the call's beginning."),
      arguments: z.string().describe("The next piece of the arguments: all of them together are one JSON text."),
    })
    .describe("What is called, and with what."),
});

/** One event of a streamed chat completion. */
export const chatCompletionChunk = z.object({
  id: answerId,
  object: z.literal("chat.completion.chunk").describe("What this is."),
  created,
  model: answeringModel,
  choices: z
    .array(
      z.object({
        index: choiceIndex,
        delta: z
          .object({
            role: z.literal("assistant").optional().describe("Who speaks, in the first chunk of a choice."),
            content: z.string().optional().describe("The next piece of the text."),
            refusal: refusal.optional(),
            reasoning_content: reasoning.optional(),
            reasoning: sameReasoning.optional(),
            tool_calls: z.array(calledInPieces).optional().describe("The next piece of a call."),
          })
          .describe("What comes next; empty in the chunk that says why the answer ended."),
        logprobs: logprobs.nullable().describe("How likely the tokens of this piece were; null unless asked for."),
        finish_reason: finishReason.nullable().describe("Why the choice ended, in its last chunk; null before."),
      }),
    )
    .describe("One choice a chunk; none in the chunk of the usage."),
  usage: streamedUsage,
});

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

const tokens = z.int().nonnegative();

export const embedding = z.object({
  object: z.literal("embedding").describe("What this is."),
  index: z.int().nonnegative().describe("Which of the texts this is of, from 0."),
  embedding: z
    .union([z.array(z.number()), z.string()])
    .describe("The vector: numbers, or with `base64` its 32-bit floats, little-endian, as base64."),
});

/** The vectors of one or many texts. */
export const embeddingList = z.object({
  object: z.literal("list").describe("What this is."),
  data: z.array(embedding).describe("One vector for each text, in the order of the texts."),
  model: answeringModel,
  usage: z
    .object({
      prompt_tokens: tokens.describe("The tokens of all texts."),
      total_tokens: tokens.describe("The same: vectors are made of no tokens."),
    })
    .describe("What the request used."),
});

/** The models that are available now. */
export const modelList = z.object({
  object: z.literal("list").describe("What this is."),
  data: z.array(model).describe("The models that the key may use, by id; empty where none is installed."),
});

/** The answer that the gateway process runs. */
export const health = z.object({
  status: z.literal("ok").describe("Always `ok`: a process that does not run says nothing."),
});

/** The answer that says if the gateway can serve requests. */
export const readinessTold = z.object({
  ready: z.boolean().describe("Whether all of the checks went well."),
  checks: z
    .object({
      serving: z.boolean().describe("That the gateway is not about to stop."),
      broker: z.boolean().describe("That it has a connection to the broker, and through it to the machines."),
      keys: z
        .boolean()
        .describe("That the store of the keys answers, or was away for only a short time, and was not emptied."),
    })
    .describe("What was looked at."),
  reasons: z
    .array(z.string())
    .describe("Why the gateway cannot serve, and what else is to be mended though it can, in words."),
});

/** The error body of every refusal and every failure, as an answer and inside a stream. */
export const errorAnswer = z.object({
  error: z
    .object({
      message: z.string().describe("What is wrong, and what to do about it, for a person."),
      type: z.string().describe("The kind of error, as OpenAI has them; of a limit, which one it is."),
      param: z
        .string()
        .nullable()
        .describe("The part of the request that is at fault, as a path; null where it is none."),
      code: z.string().nullable().describe("What is wrong, for a program: a code of the table of errors."),
    })
    .describe("The four keys that every error has."),
});
