import type { ChatBody, ChatMessage, ToolDefinition, CompleteBody, EmbedBody } from "#shared/protocol/job-bodies.ts";

/**
 * The estimated tokens of one image, whatever its size. The bytes of an image say little about its tokens and are not
 * read.
 */
export const imageTokens = 1_000;
/** The expected length of an answer when the request sets no maximum. */
export const usualAnswerTokens = 1_000;
/** The upper bound of every estimate: the largest possible budget. */
export const estimateMax = 1_000_000_000_000;

const charactersPerToken = 4;

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

/** Returns the tokens that a request is expected to use: its prompt, and the longest answers that it allows. */
export function estimateTokens(body: ChatBody, promptTokens = estimatePrompt(body)): number {
  return Math.min(promptTokens + (body.max_tokens ?? usualAnswerTokens) * (body.n ?? 1), estimateMax);
}

/** Returns the estimated tokens of the prompt alone, for callers that do not know them. */
export function estimatePrompt({ messages, tools = [] }: ChatBody): number {
  let characters = 0;
  let images = 0;
  for (const message of messages) {
    characters += charactersOf(message);
    images += imagesOf(message);
  }
  for (const tool of tools) characters += charactersOfTool(tool);
  return Math.ceil(characters / charactersPerToken) + images * imageTokens;
}

/** Returns the estimated tokens of texts that are to be embedded, or that are a whole prompt. */
export function estimateTexts(texts: readonly string[]): number {
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return Math.min(Math.ceil(characters / charactersPerToken), estimateMax);
}

/**
 * Returns the estimated tokens of a text completion: the texts alone, and with the longest answers that are allowed.
 */
export function estimateContinued(body: CompleteBody): { readonly promptTokens: number; readonly tokens: number } {
  const { prompts, suffix, n = 1, max_tokens: longest = usualAnswerTokens } = body;
  const promptTokens = estimateTexts(suffix === undefined ? prompts : [...prompts, suffix]);
  return { promptTokens, tokens: Math.min(promptTokens + longest * n * prompts.length, estimateMax) };
}

function charactersOf(message: ChatMessage): number {
  const characters = charactersOfContent(message.content);
  return message.role === "assistant" ? characters + charactersOfAssistant(message) : characters;
}

function charactersOfContent(content: ChatMessage["content"]): number {
  if (content === null || content === undefined) return 0;
  if (typeof content === "string") return content.length;
  return content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
}

function charactersOfAssistant({ reasoning_content: reasoning, tool_calls: calls = [] }: AssistantMessage): number {
  return calls.reduce(
    (sum, { function: called }) => sum + called.name.length + called.arguments.length,
    reasoning?.length ?? 0,
  );
}

function imagesOf({ content }: ChatMessage): number {
  return Array.isArray(content) ? content.filter(({ type }) => type === "image_url").length : 0;
}

function charactersOfTool({ function: { name, description = "", parameters } }: ToolDefinition): number {
  return name.length + description.length + (parameters === undefined ? 0 : JSON.stringify(parameters).length);
}

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
