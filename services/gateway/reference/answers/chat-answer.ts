import { z } from "zod";
import { toolCall } from "#shared/protocol/chat-body.ts";
import {
  answerId,
  answeringModel,
  choiceIndex,
  created,
  finishReason,
  logprobs,
  streamedUsage,
  tokenUsage,
} from "./answer-parts.ts";

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
