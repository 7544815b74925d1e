import { crc32 } from "node:zlib";
import type { ChatBody, ChatMessage } from "#shared/protocol/chat-body.ts";
import type { CompleteBody } from "#shared/protocol/complete-body.ts";
import { endCharacters, type LongText } from "#shared/process/long-texts.ts";

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
/**
 * The beginnings of a chat: the conversation before each of its assistant's answers, and what stands before its first
 * turn. A chat that was short and is asked again from its start is not known: many begin with «hello». `textsOf` has the texts
 * of a message that does not hold them itself.
 */
export function prefixesOfChat(model: string, { messages, tools }: ChatBody, textsOf = partsOf): PromptPrefixes {
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
    for (const part of textsOf(message, place)) {
      characters += part.length;
      crc = addText(crc, part);
    }
  }
  const whole = printOf(crc, { place: messages.length, characters });
  if (characters >= sharedCharactersMin) known.push(whole);
  return { known: known.slice(-turnsMax).toReversed(), left: [whole, ...left] };
}

/** The beginnings of texts that are to be continued: what completes code sends what stands before the cursor. */
export function prefixesOfTexts(model: string, { prompts }: CompleteBody): PromptPrefixes {
  const [text = ""] = prompts;
  if (text.length < sharedCharactersMin) return noPrefixes;
  const crc = crc32(text.slice(0, sharedCharactersMin), crc32(model));
  const beginning = printOf(crc, { place: 0, characters: sharedCharactersMin });
  return { known: [beginning], left: [beginning] };
}

function partsOf(message: ChatMessage, _place: number): readonly (string | LongText)[] {
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

/** Of a long text only its ends and its length are looked at: a wrong guess costs nothing but time. */
function addText(crc: number, text: string | LongText): number {
  return crc32(`${text.length}:${typeof text === "string" ? endsOf(text) : text.ends()}`, crc);
}

function endsOf(text: string): string {
  return text.length <= 2 * endCharacters ? text : text.slice(0, endCharacters) + text.slice(-endCharacters);
}

/** A checksum goes on where it was, so that each message is read once; how long all of it is tells more apart. */
function printOf(crc: number, { place, characters }: { readonly place: number; readonly characters: number }): string {
  return `${crc}.${place}.${characters}`;
}
