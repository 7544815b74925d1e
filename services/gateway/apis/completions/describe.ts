import { z } from "zod";
import { finishReasons } from "#shared/protocol/answer-events.ts";
import { completionRequest } from "./completion-request.ts";
import { count, text } from "../answer-parts.ts";
import { chunkOf, completionOf, endOfChunks } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { example } from "../example-requests.ts";

/** The log probabilities of a text's tokens, in parallel lists. */
const textLogprobs = z.object({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number()),
  top_logprobs: z.array(z.record(z.string(), z.number())),
  text_offset: z.array(count),
});
const choice = z.object({
  text: text("The text that follows the prompt; with `echo` behind the prompt itself."),
  index: count,
  logprobs: textLogprobs.nullable(),
  finish_reason: z.enum(finishReasons).exclude(["tool_calls"]),
});
const textCompletion = completionOf("text_completion", choice);
const piece = choice.extend({
  text: text("The next piece of the text."),
  finish_reason: choice.shape.finish_reason.nullable().describe(endOfChunks),
});
const textCompletionChunk = chunkOf("text_completion", piece);

export const describeCompletions: ApiDescription = {
  tag: "Completions",
  refusedAs: "settings",
  schemas: [{ completionRequest, textCompletion, textCompletionChunk, textLogprobs }],
  operations: [
    post("createCompletion", "completion", [completionRequest, textCompletion, textCompletionChunk], {
      examples: { text: example("A text that is continued", { prompt: "Once upon a time", max_tokens: 64 }) },
    }),
  ],
};
