import type { ChatBody, ChatMessage, ToolDefinition } from "#shared/protocol/chat-body.ts";
import type { CompleteBody } from "#shared/protocol/complete-body.ts";

/**
 * The estimated tokens of one image, whatever its size. The bytes of an image say little about its tokens and are not
 * read.
 */
export const imageTokens = 1_000;
/** The expected length of an answer when the request sets no maximum. */
export const answerTokens = 1_000;
/** The upper bound of every estimate: the largest possible budget. */
export const estimateMax = 1_000_000_000_000;

const charactersPerToken = 4;

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

/** Returns the tokens that a request is expected to use: its prompt, and the longest answers that it allows. */
export function estimateTokens(body: ChatBody, promptTokens = estimatePrompt(body)): number {
  return Math.min(promptTokens + (body.max_tokens ?? answerTokens) * (body.n ?? 1), estimateMax);
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
  const { prompts, suffix, n = 1, max_tokens: longest = answerTokens } = body;
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
