import type { ChatBody, ChatMessage, ToolDefinition } from "#shared/protocol/chat-body.ts";
import type { CompleteBody } from "#shared/protocol/complete-body.ts";

/** What one image is taken to cost, whatever its size: its bytes say little of it, and are not looked at. */
export const imageTokens = 1_000;
/** How long an answer is expected to be when nobody said how long it may be. */
export const answerTokens = 1_000;
/** Nothing costs more: the largest budget that there is. */
export const estimateMax = 1_000_000_000_000;

const charactersPerToken = 4;

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

/** What a request is expected to use: its prompt, and the longest answers that it allows. */
export function estimateTokens(body: ChatBody, promptTokens = estimatePrompt(body)): number {
  return Math.min(promptTokens + (body.max_tokens ?? answerTokens) * (body.n ?? 1), estimateMax);
}

/** What the prompt alone is expected to cost, where nobody told. */
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

/** What texts are expected to cost that are to be embedded, or are all of a prompt. */
export function estimateTexts(texts: readonly { readonly length: number }[]): number {
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return Math.min(Math.ceil(characters / charactersPerToken), estimateMax);
}

/** What continuing texts is expected to cost: the texts alone, and with the longest answers that are allowed. */
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
