import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { CompleteBody } from "#shared/protocol/complete-body.ts";
import type { EmbedBody } from "#shared/protocol/embed-body.ts";

/** Tokens that a template may add to each message, tool or text. */
export const tokensPerMessageMax = 256;
/** The most tokens of one image: more than any model that is run at home makes of it. */
export const tokensPerImageMax = 16_384;
/**
 * The largest context window that is believed, because machines report their windows too. No model that can be
 * downloaded has a larger one.
 */
export const windowTokensMax = 10_485_760;

/** The most that an honest machine can report for a request, apart from the window of its model. */
export interface TokenCeiling {
  readonly promptTokens: number;
  /** The number of prompts of the request; each of them may fill a window. */
  readonly prompts: number;
  /** The number of answers of the request; 0 for embeddings. */
  readonly answers: number;
  /** `max_tokens` of each answer. Without it an answer may fill the window. */
  readonly answerTokens: number | undefined;
}

export interface TokenCounts {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/**
 * Returns the ceiling of a chat request. A token is at least one byte of text, so the bytes of a job's body without its
 * images are a bound.
 */
export function chatCeiling(
  { messages, tools = [], max_tokens: answerTokens, n = 1 }: ChatBody,
  bodyBytes: number,
): TokenCeiling {
  let images = 0;
  let imageBytes = 0;
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      if (part.type !== "image_url") continue;
      images += 1;
      imageBytes += part.image_url.url.length;
    }
  }
  const allowance = tokensPerMessageMax * (messages.length + tools.length) + tokensPerImageMax * images;
  return { promptTokens: bodyBytes - imageBytes + allowance, prompts: 1, answers: n, answerTokens };
}

export function completionCeiling(
  { prompts: { length: prompts }, n = 1, max_tokens: answerTokens }: CompleteBody,
  bodyBytes: number,
): TokenCeiling {
  return { promptTokens: bodyBytes + tokensPerMessageMax * prompts, prompts, answers: n * prompts, answerTokens };
}

export function embeddingCeiling({ input: { length: prompts } }: EmbedBody, bodyBytes: number): TokenCeiling {
  return { promptTokens: bodyBytes + tokensPerMessageMax * prompts, prompts, answers: 0, answerTokens: undefined };
}

/** Lowers reported counts to what is possible under `ceiling` with a window of `window` tokens. */
export function clampTokens(reported: TokenCounts, ceiling: TokenCeiling, window: number): TokenCounts {
  const answerTokens = Math.min(ceiling.answerTokens ?? window, window);
  return {
    promptTokens: Math.min(reported.promptTokens, ceiling.promptTokens, window * ceiling.prompts),
    completionTokens: Math.min(reported.completionTokens, answerTokens * ceiling.answers),
  };
}
