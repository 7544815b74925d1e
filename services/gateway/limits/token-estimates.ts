import {
  contentText,
  type ChatBody,
  type ChatMessage,
  type CompleteBody,
  type EmbedBody,
  type ToolDefinition,
} from "#shared/protocol/job-bodies.ts";
import { meanTokens } from "./estimate-text.ts";

/**
 * The estimated tokens of one image, whatever its size. The bytes of an image say little about its tokens and are not
 * read.
 */
export const imageTokens = 1_000;
/** The expected length of an answer when the request sets no maximum. */
export const usualAnswerTokens = 1_000;
/** The upper bound of every estimate: the largest possible budget. */
export const estimateMax = 1_000_000_000_000;

/** Returns the tokens that a request is expected to use: its prompt, and the longest answers that it allows. */
export function estimateTokens(body: ChatBody, promptTokens = estimatePrompt(body)): number {
  return Math.min(promptTokens + (body.max_tokens ?? usualAnswerTokens) * (body.n ?? 1), estimateMax);
}

/** Returns the estimated tokens of the prompt alone, for callers that do not know them. */
export function estimatePrompt({ messages, tools = [] }: ChatBody): number {
  const images = messages.reduce((sum, message) => sum + imagesOf(message), 0);
  const texts = [...messages.flatMap(textsOf), ...tools.flatMap(textsOfTool)];
  return Math.ceil(meanTokens(texts)) + images * imageTokens;
}

/** Returns the estimated tokens of texts that are to be embedded, or that are a whole prompt. */
export function estimateTexts(texts: readonly string[]): number {
  return Math.min(Math.ceil(meanTokens(texts)), estimateMax);
}

/**
 * Returns the estimated tokens of a text completion: the texts alone, and with the longest answers that are allowed.
 */
export function estimateContinued(body: CompleteBody): { readonly promptTokens: number; readonly tokens: number } {
  const { prompts, suffix, n = 1, max_tokens: longest = usualAnswerTokens } = body;
  const promptTokens = estimateTexts(suffix === undefined ? prompts : [...prompts, suffix]);
  return { promptTokens, tokens: Math.min(promptTokens + longest * n * prompts.length, estimateMax) };
}

/** Returns all texts of a message: its content, its reasoning, and the names and arguments of its tool calls. */
function textsOf(message: ChatMessage): string[] {
  const texts = [contentText(message.content)];
  if (message.role !== "assistant") return texts;
  texts.push(message.reasoning_content ?? "");
  for (const { function: called } of message.tool_calls ?? []) texts.push(called.name, called.arguments);
  return texts;
}

function imagesOf({ content }: ChatMessage): number {
  return Array.isArray(content) ? content.filter(({ type }) => type === "image_url").length : 0;
}

function textsOfTool({ function: { name, description = "", parameters = {} } }: ToolDefinition): string[] {
  return [name, description, JSON.stringify(parameters)];
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

/** An upper estimate of a prompt: no common tokenizer and template makes more tokens of it. */
export interface UpperEstimate {
  readonly tokens: number;
  /** The part of `tokens` behind each of the places in the conversation that were asked for. */
  readonly behind: readonly number[];
}

/** The most tokens that templates add to a message, to a tool and to a prompt, and those of an image, with most models. */
const most = { message: 16, tool: 24, prompt: 64, image: 2_048 } as const;

/**
 * Limits the characters of a request that are estimated piece by piece: 60 ms of source code. No model has a window for
 * more. Longer prompts count their bytes, of which no tokenizer makes more tokens.
 */
export const estimatedCharactersMax = 2 * 1024 * 1024;

type CountText = (text: string) => number;

function boundedCount(): CountText {
  let left = estimatedCharactersMax;
  return (text) => {
    left -= text.length;
    return left < 0 ? Buffer.byteLength(text) : upperTokens(text);
  };
}

/**
 * Estimates a prompt from above. `places` are numbers of messages: `behind` has the tokens of the messages from each of
 * them on.
 */
export function upperEstimate({ messages, tools = [] }: ChatBody, places: readonly number[]): UpperEstimate {
  const count = boundedCount();
  const behind: number[] = [];
  let tokens = 0;
  for (const [back, message] of messages.toReversed().entries()) {
    tokens += tokensOfMessage(message, count);
    behind[messages.length - 1 - back] = tokens;
  }
  const before = tools.reduce<number>((sum, tool) => sum + tokensOfTool(tool, count), most.prompt);
  return { tokens: before + tokens, behind: places.map((place) => behind[place] ?? 0) };
}

function tokensOfMessage(message: ChatMessage, count: CountText): number {
  const calls = message.role === "assistant" ? (message.tool_calls ?? []).length : 0;
  const templates = most.message + most.tool * calls + most.image * imagesOf(message);
  return textsOf(message).reduce((sum, text) => sum + count(text), templates);
}

function tokensOfTool(tool: ToolDefinition, count: CountText): number {
  return textsOfTool(tool).reduce<number>((sum, text) => sum + count(text), most.tool);
}

/** Cuts a text into pieces as tokenizers do: words, capitals, digits, marks, line breaks, and signs of other scripts. */
const pieces = /([A-Z]?[a-zÀ-ÖØ-öø-ɏ]+)|([A-ZÀ-ÖØ-Þ]+(?![a-z]))|(\d)|([!-/:-@[-`{-~]+)|(\s{2,}|\n)|([Ͱ-߿])|([^\s\w])/gu;

/**
 * The most tokens that the tokenizers of Qwen 3, Llama 3, Gemma 3, gpt-oss and GPT-4 make of a piece, on average over each
 * text of `test/unit/gateway/limits/token-corpus.json`.
 */
const weights = {
  word: 0.94,
  laterLetter: 0.26,
  capitals: 2.45,
  digit: 1.08,
  marks: 1.02,
  laterMark: 0.12,
  layout: 2.45,
  foreignWord: 0.54,
  letterOfAlphabet: 0.58,
  sign: 1.32,
} as const;
/** A word of so many letters is mostly one token. */
const wordLetters = 6;
/** Words that one accented letter marks as words of a language other than English, which make more tokens. */
const wordsOfAccent = 16;

/** Estimates a text from above. */
export function upperTokens(text: string): number {
  let tokens = 0;
  let words = 0;
  let accents = 0;
  for (const [piece, word, capitals, digit, marks, layout, letter] of text.matchAll(pieces)) {
    if (word !== undefined) {
      words += 1;
      accents += piece.length - piece.replaceAll(/[^A-Za-z]/g, "").length;
      tokens += weights.word + weights.laterLetter * Math.max(0, piece.length - wordLetters);
    } else if (capitals !== undefined) tokens += weights.capitals;
    else if (digit !== undefined) tokens += weights.digit;
    else if (marks !== undefined) tokens += weights.marks + weights.laterMark * (piece.length - 1);
    else if (layout !== undefined) tokens += weights.layout;
    else tokens += letter === undefined ? weights.sign : weights.letterOfAlphabet;
  }
  return Math.ceil(tokens + weights.foreignWord * Math.min(words, wordsOfAccent * accents));
}
