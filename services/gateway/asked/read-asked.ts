import { createHash } from "node:crypto";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { readJsonObject } from "../intake/read-json.ts";
import { estimateContinued, estimatePrompt, estimateTexts, estimateTokens } from "../limits/estimate-tokens.ts";
import { readChatRequest } from "../openai/chat-request.ts";
import { readCompletionRequest } from "../openai/completion-request.ts";
import { readEmbeddingsRequest } from "../openai/embeddings-request.ts";
import type { Asked } from "./asked.ts";
import { prefixesOfChat, prefixesOfTexts } from "./prompt-prefixes.ts";

/** The requests that models answer. */
export type Outer = "chat" | "completion" | "embeddings";

/** Reads a request, from its bytes to what it asks. */
export function readAsked(outer: Outer, bytes: Buffer | undefined): Asked {
  const input = readJsonObject(bytes);
  switch (outer) {
    case "chat":
      return askedOfChat(input);
    case "completion":
      return askedOfCompletion(input);
    case "embeddings":
      return askedOfEmbeddings(input);
  }
}

function askedOfChat(input: Record<string, unknown>): Asked {
  const { model, stream, includeUsage, body, imageParam, ignored } = readChatRequest(input);
  const promptTokens = estimatePrompt(body);
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
      promptTokens,
      prefixes: prefixesOfChat(model, body),
    },
    shape: stream ? "chat-stream" : "chat-whole",
    ...encoded(body),
    promptTokens,
    tokens: estimateTokens(body),
  };
}

function askedOfCompletion(input: Record<string, unknown>): Asked {
  const { model, stream, includeUsage, body, ignored } = readCompletionRequest(input);
  const estimate = estimateContinued(body);
  const { promptTokens } = estimate;
  const prefixes = prefixesOfTexts(model, body);
  return {
    kind: "complete",
    idPrefix: "cmpl-",
    model,
    stream,
    includeUsage,
    ignored,
    needs: { capability: "completion", tools: false, imageParam: undefined, promptTokens, prefixes },
    shape: stream ? "text-stream" : "text-whole",
    ...encoded(body),
    ...estimate,
  };
}

function askedOfEmbeddings(input: Record<string, unknown>): Asked {
  const { model, format, body, ignored } = readEmbeddingsRequest(input);
  const tokens = estimateTexts(body.input);
  return {
    kind: "embed",
    idPrefix: "embd-",
    model,
    stream: false,
    includeUsage: true,
    ignored,
    needs: { capability: "embedding", tools: false, imageParam: undefined },
    shape: `embeddings-${format}`,
    ...encoded(body),
    promptTokens: tokens,
    tokens,
  };
}

function encoded(body: object): Pick<Asked, "body" | "sha256"> {
  const bytes = encodeJson(body);
  const inParts = bytes.byteLength > limits.partBytes;
  return { body: bytes, sha256: inParts ? createHash("sha256").update(bytes).digest("hex") : undefined };
}
