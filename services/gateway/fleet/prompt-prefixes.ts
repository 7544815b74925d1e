import { crc32 } from "node:zlib";
import type { ChatBody, ChatMessage, CompleteBody } from "#shared/protocol/job-bodies.ts";

/** Prefixes of a prompt, as hashes. A runtime that has computed a prefix before can begin where it ends. */
export interface PromptPrefixes {
  /** Prefixes that are worth finding a machine for, the longest first. */
  readonly known: readonly string[];
  /** Prefixes that a machine has cached once it has answered. */
  readonly left: readonly string[];
  /** The key of the prompt, when keys do not share what machines have cached. */
  readonly keyId?: string | undefined;
}

export const noPrefixes: PromptPrefixes = { known: [], left: [] };

/**
 * Earlier turns of a conversation that are looked for. Its last turn is the one that matches, unless the user went
 * back.
 */
const turnsMax = 16;
/**
 * Characters from which a prefix that others may share, such as a system prompt, is worth finding. To compute a shorter
 * one again takes less time than to wait behind others.
 */
const sharedCharactersMin = 2_048;
/** Characters of each end of a text that count; the middle of a longer text is not read. */
const endCharacters = 512;

/**
 * Returns the prefixes of a chat: the conversation before each of its assistant's answers, and the part before its
 * first turn. A short chat that is sent again from its start is not in `known`: many begin with «hello».
 */
export function prefixesOfChat(model: string, { messages, tools }: ChatBody): PromptPrefixes {
  const beginning = tools === undefined ? crc32(model) : addText(crc32(model), JSON.stringify(tools));
  let crc = beginning;
  let characters = 0;
  const known: string[] = [];
  const left: string[] = [];
  for (const [place, message] of messages.entries()) {
    const before = messages[place - 1];
    if (before !== undefined && message.role === "assistant") known.push(printOf(crc, { place, characters }));
    else if (before?.role === "system" && message.role !== "system" && characters >= sharedCharactersMin) {
      known.push(printOf(crc, { place, characters }));
      left.push(printOf(crc, { place, characters }));
    }
    crc = crc32(message.role, crc);
    for (const part of partsOf(message)) {
      characters += part.length;
      crc = addText(crc, part);
    }
  }
  const whole = printOf(crc, { place: messages.length, characters });
  if (characters >= sharedCharactersMin) known.push(whole);
  return { known: known.slice(-turnsMax).toReversed(), left: [whole, ...left] };
}

/** Returns the prefixes of texts to be continued: a client that completes code sends the text before the cursor. */
export function prefixesOfTexts(model: string, { prompts }: CompleteBody): PromptPrefixes {
  const [text = ""] = prompts;
  if (text.length < sharedCharactersMin) return noPrefixes;
  const crc = crc32(text.slice(0, sharedCharactersMin), crc32(model));
  const beginning = printOf(crc, { place: 0, characters: sharedCharactersMin });
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

/**
 * Adds a text to a checksum. Only the ends and the length of a long text count: a wrong guess costs nothing but time.
 */
function addText(crc: number, text: string): number {
  return crc32(`${text.length}:${endsOf(text)}`, crc);
}

function endsOf(text: string): string {
  return text.length <= 2 * endCharacters ? text : text.slice(0, endCharacters) + text.slice(-endCharacters);
}

/**
 * Returns the hash of a prefix. The checksum goes on where it was, so that each message is read once. The number of
 * messages and of characters tells more prefixes apart.
 */
function printOf(crc: number, { place, characters }: { readonly place: number; readonly characters: number }): string {
  return `${crc}.${place}.${characters}`;
}
