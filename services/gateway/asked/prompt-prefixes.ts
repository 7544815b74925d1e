import { hash } from "node:crypto";
import type { ChatBody, ChatMessage } from "#shared/protocol/chat-body.ts";
import type { CompleteBody } from "#shared/protocol/complete-body.ts";

/** How a prompt begins, as hashes: a runtime that has computed that before can begin where it ends. */
export interface PromptPrefixes {
  /** Beginnings that are worth finding a machine for, the longest first. */
  readonly known: readonly string[];
  /** Beginnings that a machine knows once it has answered. */
  readonly left: readonly string[];
}

export const noPrefixes: PromptPrefixes = { known: [], left: [] };

/** So many earlier turns of a conversation are looked for: its last one, unless somebody went back. */
const turnsMax = 16;
/**
 * A beginning that others may share, such as a system prompt, is worth finding when it is this long: to compute a
 * shorter one again takes less than to wait behind others.
 */
const sharedCharactersMin = 2_048;
/** Of a long text only its ends and its length are looked at: a wrong guess costs nothing but time. */
const endCharacters = 512;

/**
 * The beginnings of a chat: the conversation before each of its assistant's answers, and what stands before its first
 * turn. A chat that was short and is asked again from its start is not known: many begin with «hello».
 */
export function prefixesOfChat(model: string, { messages, tools }: ChatBody): PromptPrefixes {
  let soFar = digest(`${model}\n${tools === undefined ? "" : ends(JSON.stringify(tools))}`);
  let characters = 0;
  const known: string[] = [];
  const left: string[] = [];
  for (const [place, message] of messages.entries()) {
    const before = messages[place - 1];
    if (before !== undefined && message.role === "assistant") known.push(soFar);
    else if (before?.role === "system" && message.role !== "system" && characters >= sharedCharactersMin) {
      known.push(soFar);
      left.push(soFar);
    }
    characters += charactersOf(message);
    soFar = digest(`${soFar}${message.role}${partsOf(message).map(ends).join("")}`);
  }
  if (characters >= sharedCharactersMin) known.push(soFar);
  return { known: known.slice(-turnsMax).toReversed(), left: [soFar, ...left] };
}

/** The beginnings of texts that are to be continued: what completes code sends what stands before the cursor. */
export function prefixesOfTexts(model: string, { prompts }: CompleteBody): PromptPrefixes {
  const [text = ""] = prompts;
  if (text.length < sharedCharactersMin) return noPrefixes;
  const beginning = digest(`${model}\n${text.slice(0, sharedCharactersMin)}`);
  return { known: [beginning], left: [beginning] };
}

function partsOf(message: ChatMessage): readonly string[] {
  const { content } = message;
  const parts =
    content === null || content === undefined
      ? []
      : typeof content === "string"
        ? [content]
        : content.map((part) => (part.type === "text" ? part.text : part.image_url.url));
  if (message.role !== "assistant" || message.tool_calls === undefined) return parts;
  return [...parts, ...message.tool_calls.map(({ function: called }) => called.name + called.arguments)];
}

function charactersOf(message: ChatMessage): number {
  return partsOf(message).reduce((sum, { length }) => sum + length, 0);
}

function ends(text: string): string {
  const { length } = text;
  if (length <= 2 * endCharacters) return `${length}:${text}`;
  return `${length}:${text.slice(0, endCharacters)}${text.slice(-endCharacters)}`;
}

const digestCharacters = 22;

function digest(text: string): string {
  return hash("sha256", text, "base64url").slice(0, digestCharacters);
}
