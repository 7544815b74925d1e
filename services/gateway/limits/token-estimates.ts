import {
  contentText,
  type ChatBody,
  type ChatMessage,
  type CompleteBody,
  type EmbedBody,
  type ToolDefinition,
} from "#shared/protocol/job-bodies.ts";

/**
 * The tokens of a character behind one of another script, and behind one of its own. They are fitted to `o200k_base`, the
 * tokenizer of gpt-oss: those of Qwen 3, Llama 3 and Gemma 3 make about as many tokens. Older ones (`cl100k_base`) make
 * up to four times as many outside ASCII.
 */
const scripts = {
  layout: [0.2, 0.02],
  space: [0.04, 0],
  mark: [0.78, 0.1],
  digit: [1.42, 0.3],
  capital: [0.5, 0.21],
  letter: [0.77, 0.14],
  westernLetter: [0.13, 0.43],
  latinLetter: [0.31, 0.05],
  greek: [0.68, 0.4],
  cyrillic: [0.86, 0.25],
  semitic: [0.75, 0.3],
  indic: [0.2, 0.5],
  sign: [0.88, 0.99],
  kana: [0.91, 0.48],
  han: [1.18, 0.87],
  hangul: [0.93, 0.73],
  other: [1.01, 0.86],
} as const;

/** The blocks of Unicode by their first character. Halves of emoji are among the others. */
const blocks: readonly (readonly [from: number, script: keyof typeof scripts])[] = [
  [0x0, "layout"],
  [0x20, "space"],
  [0x21, "mark"],
  [0x30, "digit"],
  [0x3a, "mark"],
  [0x41, "capital"],
  [0x5b, "mark"],
  [0x61, "letter"],
  [0x7b, "mark"],
  [0x7f, "sign"],
  [0xc0, "westernLetter"],
  [0x100, "latinLetter"],
  [0x370, "greek"],
  [0x400, "cyrillic"],
  [0x530, "semitic"],
  [0x900, "indic"],
  [0x1e00, "latinLetter"],
  [0x1f00, "greek"],
  [0x2000, "sign"],
  [0x3040, "kana"],
  [0x3100, "han"],
  [0xa000, "other"],
  [0xac00, "hangul"],
  [0xd7b0, "other"],
  [0xf900, "han"],
  [0xfb00, "semitic"],
  [0xff00, "han"],
];

const names = Object.keys(scripts);
const behindOther = Float64Array.from(Object.values(scripts), ([tokens]) => tokens);
const behindOwn = Float64Array.from(Object.values(scripts), ([, tokens]) => tokens);
/** The number of each character's script. */
const scriptOf = new Uint8Array(0x1_00_00);
for (const [from, script] of blocks) scriptOf.fill(names.indexOf(script), from);

/** The most characters of a prompt that are looked at. Of a longer one they are evenly spread over the whole. */
export const sampledCharactersMax = 8 * 1024;

/** Estimates the tokens of texts that belong together: 0.8 to 1.3 times those of `o200k_base`, in any script. */
export function meanTokens(texts: readonly string[]): number {
  let characters = 0;
  for (const { length } of texts) characters += length;
  const stride = Math.ceil(characters / sampledCharactersMax);
  let [tokens, sampled, at, drawn] = [0, 0, 0, 1];
  for (const text of texts) {
    while (at < text.length) {
      const script = scriptOf[text.charCodeAt(at)] ?? 0;
      const before = at === 0 ? undefined : scriptOf[text.charCodeAt(at - 1)];
      tokens += (script === before ? behindOwn : behindOther)[script] ?? 0;
      sampled += 1;
      // Steps of one length would see only some columns of a table. Those drawn here are `stride` long on average.
      drawn = Math.imul(drawn, 1_664_525) + 1_013_904_223;
      at += 1 + (((drawn >>> 16) * (2 * stride - 1)) >>> 16);
    }
    at -= text.length;
  }
  return sampled === 0 ? 0 : (tokens * characters) / sampled;
}

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
  let images = 0;
  for (const message of messages) images += imagesOf(message);
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
export function textsOf(message: ChatMessage): string[] {
  const texts = [contentText(message.content)];
  if (message.role !== "assistant") return texts;
  texts.push(message.reasoning_content ?? "");
  for (const { function: called } of message.tool_calls ?? []) texts.push(called.name, called.arguments);
  return texts;
}

export function imagesOf({ content }: ChatMessage): number {
  return Array.isArray(content) ? content.filter(({ type }) => type === "image_url").length : 0;
}

export function textsOfTool({ function: { name, description = "", parameters = {} } }: ToolDefinition): string[] {
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
