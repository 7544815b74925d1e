import { plainRendering } from "../../chats/render-completions.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeCompletions } from "./describe.ts";
import type { CompletionForm } from "../../chats/runtime-fields.ts";
import { textCompletion, TextChunks } from "./render-text.ts";

/** OpenAI's legacy completions. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeCompletions],
  endpoints: [
    {
      kind: "completion",
      path: "/completions",
      idPrefix: "cmpl-",
      rendering: ({ form: { includeUsage, sentNames }, stream }: ReadRequest<CompletionForm>) =>
        plainRendering((head) => (stream ? new TextChunks(head, includeUsage) : textCompletion(head)), sentNames),
    },
  ],
};
