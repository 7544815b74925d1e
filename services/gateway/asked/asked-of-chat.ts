import { chatCeiling } from "../limits/token-ceiling.ts";
import type { ReadChatRequest } from "../openai/chat-request.ts";
import type { Asked } from "./asked.ts";
import type { PromptPrefixes } from "./prompt-prefixes.ts";

/** Facts about a chat's texts, and the body of its job. */
interface Found extends Pick<Asked, "promptTokens" | "tokens" | "body" | "sha256"> {
  readonly prefixes: PromptPrefixes;
}

/** Returns the `Asked` of a chat request. */
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
    ceiling: chatCeiling(body, found.body.byteLength),
    ...found,
  };
}
