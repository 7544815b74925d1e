import { inClientWords, plainRendering } from "../../chats/render-completions.ts";
import type { ChatForm } from "../../chats/read-chat.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeChat } from "./describe.ts";
import type { ChatCompletionForm } from "./chat-request.ts";
import { chatCompletion, ChatChunks } from "./render-chat.ts";
import { customChoice, CustomChatChunks } from "./render-custom-chat.ts";

/** OpenAI's chat completions. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeChat],
  endpoints: [
    {
      kind: "chat",
      path: "/chat/completions",
      idPrefix: "chatcmpl-",
      isResumable: true,
      rendering({ form, stream }: ReadRequest<ChatCompletionForm & ChatForm>) {
        const { includeUsage, sentNames } = form;
        const custom = new Set(form.custom);
        const plain = plainRendering((head) => {
          if (!stream)
            return custom.size === 0 ? chatCompletion(head) : chatCompletion(head, () => customChoice(custom));
          return custom.size === 0
            ? new ChatChunks(head, includeUsage)
            : new CustomChatChunks(head, includeUsage, custom);
        }, sentNames);
        return inClientWords(form, plain);
      },
    },
  ],
};
