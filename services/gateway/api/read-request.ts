import { hash } from "node:crypto";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerShape } from "./answer-shape.ts";
import type { Needs } from "../fleet/choose-machine.ts";
import { readJsonObject } from "../http/read-json.ts";
import { estimateContinued, estimatePrompt, estimateTexts, estimateTokens } from "../limits/token-estimates.ts";
import { chatCeiling, completionCeiling, embeddingCeiling, type TokenCeiling } from "../limits/token-estimates.ts";
import { readChatRequest, type ReadChatRequest } from "./chat-request.ts";
import { readCompletionRequest, readEmbeddingsRequest } from "./text-requests.ts";
import { readResponseRequest } from "./responses/response-request.ts";
import type { ResponseTerms } from "./responses/response-terms.ts";
import { prefixesOfChat, prefixesOfTexts } from "../fleet/prompt-prefixes.ts";

/** The kinds of requests that models answer, by API. */
export type Outer = "chat" | "response" | "completion" | "embeddings";

/** A request to a model, once its shape is valid. All of it is plain data: another thread may read the request. */
export interface ReadRequest {
  readonly kind: JobKind;
  readonly model: string;
  readonly needs: Needs;
  /** The body of the job, and the hash of a body that is sent in parts. */
  readonly body: Uint8Array;
  readonly sha256: string | undefined;
  /** True if the answer is streamed; `shape` is the shape of the answer. */
  readonly stream: boolean;
  readonly shape: AnswerShape;
  readonly includeUsage: boolean;
  /** Prefix of the answer's id. */
  readonly idPrefix: string;
  /** Paths of the request's unknown fields, which are ignored. */
  readonly ignored: readonly string[];
  /**
   * For a response: the parts of its request that the answer repeats. The gateway renders it, because only it has them.
   */
  readonly terms?: ResponseTerms | undefined;
  /** Estimated tokens of the prompt, and of the prompt with the longest answers that the request allows. */
  readonly promptTokens: number;
  readonly tokens: number;
  /** The most tokens that a machine may report for the request; more is not believed. */
  readonly ceiling: TokenCeiling;
}

/** Reads and checks a request from its bytes, and translates it to the body of its job. */
export function readRequest(outer: Outer, bytes: Buffer | undefined): ReadRequest {
  const input = readJsonObject(bytes);
  switch (outer) {
    case "chat":
      return chatOf(readChatRequest(input));
    case "response":
      return responseOf(input);
    case "completion":
      return completionOf(input);
    case "embeddings":
      return embeddingsOf(input);
  }
}

function chatOf({ model, stream, includeUsage, body, imageParam, ignored }: ReadChatRequest): ReadRequest {
  const promptTokens = estimatePrompt(body);
  const job = jobBody(body);
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
    ...job,
    promptTokens,
    tokens: estimateTokens(body, promptTokens),
    ceiling: chatCeiling(body, job.body.byteLength),
  };
}

/** Reads a response request as a chat. Its machine sends answer events, and this gateway renders them for the API. */
function responseOf(input: Record<string, unknown>): ReadRequest {
  const request = readResponseRequest(input);
  return { ...chatOf(request), idPrefix: "resp_", terms: request.terms };
}

function completionOf(input: Record<string, unknown>): ReadRequest {
  const { model, stream, includeUsage, body, ignored } = readCompletionRequest(input);
  const estimate = estimateContinued(body);
  const { promptTokens } = estimate;
  const prefixes = prefixesOfTexts(model, body);
  const job = jobBody(body);
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

function embeddingsOf(input: Record<string, unknown>): ReadRequest {
  const { model, format, body, ignored } = readEmbeddingsRequest(input);
  const tokens = estimateTexts(body.input);
  const job = jobBody(body);
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

function jobBody(value: object): Pick<ReadRequest, "body" | "sha256"> {
  const body = encodeJson(value);
  return { body, sha256: body.byteLength > limits.partBytes ? hash("sha256", body) : undefined };
}
