import type { Api } from "../api.ts";
import { describeChat } from "./describe.ts";
import { renderChat } from "./render-chat.ts";

/** OpenAI's chat completions. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeChat],
  endpoints: [
    { kind: "chat", path: "/chat/completions", idPrefix: "chatcmpl-", isResumable: true, rendering: renderChat },
  ],
};
