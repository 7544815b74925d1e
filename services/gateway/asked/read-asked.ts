import { eventsShape } from "#shared/answer/answer-shape.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { readJsonObject } from "../intake/read-json.ts";
import { estimateContinued, estimatePrompt, estimateTexts, estimateTokens } from "../limits/estimate-tokens.ts";
import { completionCeiling, embeddingCeiling } from "../limits/token-ceiling.ts";
import { readChatRequest, type ReadChatRequest } from "../openai/chat-request.ts";
import { readCompletionRequest } from "../openai/completion-request.ts";
import { readEmbeddingsRequest } from "../openai/embeddings-request.ts";
import { readResponseRequest } from "../openai/responses/response-request.ts";
import { askedOfChat } from "./asked-of-chat.ts";
import type { Asked } from "./asked.ts";
import { jobBody } from "./job-body.ts";
import { prefixesOfChat, prefixesOfTexts } from "./prompt-prefixes.ts";
import { readLongChat } from "./read-long-chat.ts";

/** The kinds of requests that models answer, by API. */
export type Outer = "chat" | "response" | "completion" | "embeddings";

/** Reads and checks a request from its bytes. */
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

/** Reads all of a chat at once; for a chat that is not plain, or not long. */
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

/** Reads a response request as a chat. Its machine sends answer events, and this gateway renders them for the API. */
function askedOfResponse(input: Record<string, unknown>): Asked {
  const request = readResponseRequest(input);
  return { ...askedOfWholeChat(request), idPrefix: "resp_", shape: eventsShape, terms: request.terms };
}

function askedOfCompletion(input: Record<string, unknown>): Asked {
  const { model, stream, includeUsage, body, ignored } = readCompletionRequest(input);
  const estimate = estimateContinued(body);
  const { promptTokens } = estimate;
  const prefixes = prefixesOfTexts(model, body);
  const job = jobBody(encodeJson(body));
  return {
    kind: "complete",
    idPrefix: "cmpl-",
    model,
    stream,
    includeUsage,
    ignored,
    needs: { capability: "completion", tools: false, imageParam: undefined, promptTokens, prefixes },
    shape: stream ? "text-stream" : "text-whole",
    ...job,
    ...estimate,
    ceiling: completionCeiling(body, job.body.byteLength),
  };
}

function askedOfEmbeddings(input: Record<string, unknown>): Asked {
  const { model, format, body, ignored } = readEmbeddingsRequest(input);
  const tokens = estimateTexts(body.input);
  const job = jobBody(encodeJson(body));
  return {
    kind: "embed",
    idPrefix: "embd-",
    model,
    stream: false,
    includeUsage: true,
    ignored,
    needs: { capability: "embedding", tools: false, imageParam: undefined },
    shape: `embeddings-${format}`,
    ...job,
    promptTokens: tokens,
    tokens,
    ceiling: embeddingCeiling(body, job.body.byteLength),
  };
}
