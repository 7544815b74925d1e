import { z } from "zod";
import { finishReasons } from "#shared/protocol/answer-events.ts";
import { plainRendering, withCost } from "../../chats/render-completions.ts";
import type { Rendering } from "../../requests/endpoint.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { CompletionForm } from "../../chats/runtime-fields.ts";
import type { Api } from "../api.ts";
import { count, numbers, text } from "../answer-parts.ts";
import { chunkOf, completionOf, endOfChunks } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { example } from "../example-requests.ts";
import { textCompletion, TextChunks } from "./render-text.ts";
import { completionRequest } from "./completion-request.ts";

/** The log probabilities of a text's tokens, in parallel lists. */
const textLogprobs = z.object({
  tokens: z.array(text),
  token_logprobs: numbers,
  top_logprobs: z.array(z.record(text, z.number())),
  text_offset: z.array(count),
});
const finish_reason = z.enum(finishReasons).exclude(["tool_calls"]);
const choice = z.object({ text, index: count, logprobs: textLogprobs.nullable(), finish_reason });
const completion = completionOf("text_completion", choice);
const piece = choice.extend({ finish_reason: finish_reason.nullable().describe(endOfChunks) });
const textCompletionChunk = chunkOf("text_completion", piece);

const describeCompletions: ApiDescription = {
  tag: "Completions",
  refusedAs: "settings",
  schemas: [{ completionRequest, textCompletion: completion, textCompletionChunk, textLogprobs }],
  operations: [
    post("createCompletion", "completion", [completionRequest, completion, textCompletionChunk], {
      examples: { text: example("A text that is continued", { prompt: "Once upon a time", max_tokens: 64 }) },
    }),
  ],
};

/** OpenAI's legacy completions. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeCompletions],
  endpoints: [
    {
      kind: "completion",
      path: "/completions",
      idPrefix: "cmpl-",
      rendering({ form, stream }: ReadRequest<CompletionForm>, request) {
        const { includeUsage, sentNames } = form;
        const render: Rendering["render"] = (head) =>
          stream ? new TextChunks(head, includeUsage) : textCompletion(head);
        return withCost(form, request, plainRendering(render, sentNames));
      },
    },
  ],
};
