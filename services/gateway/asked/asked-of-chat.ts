import type { ReadChatRequest } from "../openai/chat-request.ts";
import type { Asked } from "./asked.ts";
import type { PromptPrefixes } from "./prompt-prefixes.ts";

/** What is learnt of a chat's texts, beside the body of its job. */
interface Found extends Pick<Asked, "promptTokens" | "tokens" | "body" | "sha256"> {
  readonly prefixes: PromptPrefixes;
}

/** What a chat asks. */
export function askedOfChat(request: ReadChatRequest, { prefixes, ...found }: Found): Asked {
  const { model, stream, includeUsage, body, imageParam, ignored } = request;
  return {
    kind: "chat",
    idPrefix: "chatcmpl-",
    model,
    stream,
    includeUsage,
    ignored,
    needs: {
      capability: "completion",
      tools: body.tools !== undefined,
      imageParam,
      promptTokens: found.promptTokens,
      prefixes,
    },
    shape: stream ? "chat-stream" : "chat-whole",
    ...found,
  };
}
