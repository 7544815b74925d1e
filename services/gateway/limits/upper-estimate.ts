import type { ChatBody, ChatMessage, ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { imagesOf, textsOf, textsOfTool } from "./token-estimates.ts";

/** An upper estimate of a prompt: no common tokenizer and template makes more tokens of it. */
export interface UpperEstimate {
  readonly tokens: number;
  /** The part of `tokens` behind each of the messages that were asked for. */
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
 * Estimates a prompt from above. `indexes` are those of messages: `behind` has the tokens of the messages from each of
 * them on.
 */
export function upperEstimate({ messages, tools = [] }: ChatBody, indexes: readonly number[]): UpperEstimate {
  const count = boundedCount();
  const behind: number[] = [];
  let tokens = 0;
  for (const [back, message] of messages.toReversed().entries()) {
    tokens += tokensOfMessage(message, count);
    behind[messages.length - 1 - back] = tokens;
  }
  const before = tools.reduce<number>((sum, tool) => sum + tokensOfTool(tool, count), most.prompt);
  return { tokens: before + tokens, behind: indexes.map((index) => behind[index] ?? 0) };
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
