import { inClientWords } from "../../chats/render-completions.ts";
import { countOfChat } from "../../chats/count-chat.ts";
import type { ChatForm } from "../../chats/read-chat.ts";
import type { Endpoint } from "../../requests/endpoint.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeMessages } from "./describe.ts";
import { messageFaults } from "./message-faults.ts";
import { renderMessage } from "./render-message.ts";

const messages: Endpoint = {
  kind: "message",
  path: "/messages",
  idPrefix: "msg_",
  isResumable: true,
  rendering: ({ form, stream: streamed }: ReadRequest<ChatForm>, { id: requestId }) =>
    inClientWords(form, renderMessage({ streamed, requestId })),
};

/** Anthropic's Messages API. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeMessages],
  faults: messageFaults,
  endpoints: [
    messages,
    {
      ...messages,
      kind: "count",
      path: "/messages/count_tokens",
      isResumable: false,
      countOf: (asked: ReadRequest<ChatForm>) => countOfChat(asked, (input_tokens) => ({ input_tokens })),
    },
  ],
};
