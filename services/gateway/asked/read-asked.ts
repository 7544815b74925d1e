import { eventsShape } from "#shared/answer/answer-shape.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { readJsonObject } from "../intake/read-json.ts";
import { estimateContinued, estimatePrompt, estimateTexts, estimateTokens } from "../limits/estimate-tokens.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { readCompletionRequest } from "../openai/completion-request.ts";
import { readEmbeddingsRequest } from "../openai/embeddings-request.ts";
import { readResponseRequest } from "../openai/responses/response-request.ts";
import { askedOfChat } from "./asked-of-chat.ts";
import type { Asked } from "./asked.ts";
import { jobBody } from "./job-body.ts";
import { prefixesOfChat, prefixesOfTexts } from "./prompt-prefixes.ts";
import { readLongChat } from "./read-long-chat.ts";

/** The requests that models answer. */
export type Outer = "chat" | "response" | "completion" | "embeddings";

/** Reads a request, from its bytes to what it asks. */
export function readAsked(outer: Outer, bytes: Buffer | undefined): Asked {
  switch (outer) {
    case "chat":
      return readLongChat(bytes) ?? readWholeChat(bytes);
    case "response":
      return askedOfResponse(readJsonObject(bytes));
    case "completion":
      return askedOfCompletion(readJsonObject(bytes));
    case "embeddings":
      return askedOfEmbeddings(readJsonObject(bytes));
  }
}

/** The same by reading all of it, for what is not plain, or not long. */
export function readWholeChat(bytes: Buffer | undefined): Asked {
  return askedOfWholeChat(readChatRequest(readJsonObject(bytes)));
}

function askedOfWholeChat(request: ReadChatRequest): Asked {
  const { model, body } = request;
  const promptTokens = estimatePrompt(body);
  const prefixes = prefixesOfChat(model, body);
  const tokens = estimateTokens(body, promptTokens);
  return askedOfChat(request, { promptTokens, tokens, prefixes, ...jobBody(encodeJson(body)) });
}

/** A response is a chat, of which its machine tells in events and this gateway in the words of the API. */
function askedOfResponse(input: Record<string, unknown>): Asked {
  const request = readResponseRequest(input);
  return { ...askedOfWholeChat(request), idPrefix: "resp_", shape: eventsShape, terms: request.terms };
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
    ...jobBody(encodeJson(body)),
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
    ...jobBody(encodeJson(body)),
    promptTokens: tokens,
    tokens,
  };
}
