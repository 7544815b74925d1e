import { hash } from "node:crypto";
import type { ChatBody, ChatMessage } from "#shared/protocol/job-bodies.ts";

/** Characters of one block: about the 16 tokens that model servers cache together. */
export const blockCharacters = 64;
/** Limits the blocks of a prompt: about 260,000 tokens. The rest of a longer prompt is not looked for in caches. */
export const promptBlocksMax = 16_384;

/** A prompt as hashes. Each stands for the whole text before it, so that equal hashes mean equal beginnings. */
export interface PromptBlocks {
  /** A hash for each `blockCharacters` of the prompt. */
  readonly blocks: Int32Array;
  /** The characters that the blocks were made of. */
  readonly characters: number;
  /** The ends of the conversation's earlier turns, the longest first. */
  readonly turns: readonly TurnEnd[];
  /** Hash of the whole prompt. */
  readonly whole: number;
  /** The key of the prompt, when keys do not share what machines have cached. */
  readonly keyId?: string | undefined;
}

/** The place of a message of the assistant, and the hash of the messages before it. */
export interface TurnEnd {
  readonly place: number;
  readonly hash: number;
}

/** Earlier turns that are looked for. The last one matches, unless the user went back. */
const turnsMax = 16;

/** Returns the blocks of a chat, in the order in which templates render it: tools, then messages. */
export function blocksOfChat({ messages, tools }: ChatBody, seed: number): PromptBlocks {
  const blocks = new BlockHash(seed);
  const turns: TurnEnd[] = [];
  if (tools !== undefined) blocks.add(JSON.stringify(tools));
  for (const [place, message] of messages.entries()) {
    if (place > 0 && message.role === "assistant") turns.push({ place, hash: blocks.end });
    addMessage(blocks, message);
  }
  return blocks.of(turns.slice(-turnsMax).toReversed());
}

/** Returns the blocks of a text to be continued: a client that completes code sends the text before the cursor. */
export function blocksOfText(text: string, seed: number): PromptBlocks {
  const blocks = new BlockHash(seed);
  blocks.add(text);
  return blocks.of([]);
}

function addMessage(blocks: BlockHash, message: ChatMessage): void {
  const { role, content } = message;
  blocks.add(`<${role}>`);
  if (typeof content === "string") blocks.add(content);
  else {
    for (const part of content ?? []) {
      blocks.add(part.type === "text" ? part.text : hash("sha256", part.image_url.url));
    }
  }
  if (role !== "assistant") return;
  for (const { function: called } of message.tool_calls ?? []) blocks.add(`<call>${called.name}${called.arguments}`);
}

/**
 * Hashes a text piece by piece. A hash for each block by `node:crypto` would take ten times as long. The seed is a
 * secret of the site: without it, a hash does not tell whether it stands for a guessed text.
 */
class BlockHash {
  readonly #blocks: number[] = [];
  #hash: number;
  #word = 0;
  #characters = 0;

  constructor(seed: number) {
    this.#hash = seed;
  }

  add(text: string): void {
    let [hashed, word, characters] = [this.#hash, this.#word, this.#characters];
    for (let at = 0; at < text.length; at += 1) {
      word = ((word << 9) | (word >>> 23)) ^ text.charCodeAt(at);
      characters += 1;
      if (characters % 4 > 0) continue;
      hashed = mixed(hashed, word);
      word = 0;
      if (characters % blockCharacters === 0 && this.#blocks.length < promptBlocksMax) this.#blocks.push(hashed);
    }
    [this.#hash, this.#word, this.#characters] = [hashed, word, characters];
  }

  /** Hash of all text so far. */
  get end(): number {
    return mixed(mixed(this.#hash, this.#word), this.#characters);
  }

  of(turns: readonly TurnEnd[]): PromptBlocks {
    return { blocks: Int32Array.from(this.#blocks), characters: this.#characters, turns, whole: this.end };
  }
}

/** Returns the number that tells the blocks of a model, and of a key that shares none, from equal blocks of others. */
export function saltOf(model: string, keyId = ""): number {
  let salt = 0;
  for (const text of [model, keyId]) {
    for (let at = 0; at < text.length; at += 1) salt = mixed(salt, text.charCodeAt(at));
    salt = mixed(salt, text.length);
  }
  return salt;
}

/** Mixes a word into a hash, as MurmurHash2 does. */
export function mixed(hashed: number, word: number): number {
  const product = Math.imul(hashed ^ word, 0x5bd1e995);
  return product ^ (product >>> 15);
}
