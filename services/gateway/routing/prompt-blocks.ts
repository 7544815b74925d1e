import { hash } from "node:crypto";
import type { ChatBody, ChatMessage } from "#shared/protocol/job-bodies.ts";

/** Bytes of one block: about the 16 tokens that model servers cache together. */
export const blockBytes = 64;
const blockWords = blockBytes / 4;
/** Limits the blocks of a prompt: about 260,000 tokens. The rest of a longer prompt is not looked for in caches. */
export const promptBlocksMax = 16_384;

/** A prompt as hashes. Each stands for the whole text before it, so that equal hashes mean equal beginnings. */
export interface PromptBlocks {
  /** A hash for each `blockBytes` of the prompt as UTF-8. */
  readonly blocks: Int32Array;
  /** The bytes that the blocks were made of. */
  readonly bytes: number;
  /** The ends of the conversation's earlier turns, the longest first. */
  readonly turns: readonly TurnEnd[];
  /** Hash of the whole prompt. */
  readonly whole: number;
  /** The key of the prompt, when keys do not share what machines have cached. */
  readonly keyId?: string | undefined;
}

/** The index of a message of the assistant, and the hash of the messages before it. */
export interface TurnEnd {
  readonly index: number;
  readonly hash: number;
}

/** Earlier turns that are looked for. The last one matches, unless the user went back. */
const turnsMax = 16;

/** Returns the blocks of a chat, in the order in which templates render it: tools, then messages. */
export function blocksOfChat({ messages, tools }: ChatBody, seed: number): PromptBlocks {
  const blocks = new BlockHash(seed);
  const turns: TurnEnd[] = [];
  if (tools !== undefined) blocks.add(JSON.stringify(tools));
  for (const [index, message] of messages.entries()) {
    if (index > 0 && message.role === "assistant") turns.push({ index, hash: blocks.end });
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

/** Bytes of one turn of hashing. A turn copies the text as UTF-8 and reads it as words. */
const turn = new Uint8Array(64 * 1024);
const turnWords = new Int32Array(turn.buffer);
const encoder = new TextEncoder();

/**
 * Hashes a text piece by piece. A hash for each block by `node:crypto` would take ten times as long. The seed is a
 * secret of the site: without it, a hash does not tell whether it stands for a guessed text.
 */
class BlockHash {
  readonly #blocks: number[] = [];
  #hash: number;
  /** The last bytes, less than a word. */
  #rest = new Uint8Array(0);
  #bytes = 0;

  constructor(seed: number) {
    this.#hash = seed;
  }

  add(text: string): void {
    for (let at = 0; at < text.length;) {
      turn.set(this.#rest);
      const { read, written } = encoder.encodeInto(text.slice(at), turn.subarray(this.#rest.length));
      at += read;
      const filled = this.#rest.length + written;
      this.#addWords(filled >>> 2);
      this.#rest = turn.slice(filled & ~3, filled);
    }
  }

  #addWords(count: number): void {
    let hashed = this.#hash;
    let words = this.#bytes >>> 2;
    for (let at = 0; at < count; at += 1) {
      hashed = mixed(hashed, turnWords[at] ?? 0);
      words += 1;
      if (words % blockWords === 0 && this.#blocks.length < promptBlocksMax) this.#blocks.push(hashed);
    }
    this.#hash = hashed;
    this.#bytes = words * 4;
  }

  /** Hash of all text so far. */
  get end(): number {
    let hashed = this.#hash;
    for (const byte of this.#rest) hashed = mixed(hashed, byte);
    return mixed(hashed, this.#bytes + this.#rest.length);
  }

  of(turns: readonly TurnEnd[]): PromptBlocks {
    const bytes = this.#bytes + this.#rest.length;
    return { blocks: new Int32Array(this.#blocks), bytes, turns, whole: this.end };
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
