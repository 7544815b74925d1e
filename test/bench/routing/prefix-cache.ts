import { crc32 } from "node:zlib";

/** One token of a simulated engine has four characters, and a block of its cache has 16 tokens, as vLLM's. */
export const charactersPerToken = 4;
export const blockTokens = 16;
const blockCharacters = charactersPerToken * blockTokens;
/** A block's name is a checksum and its place, which together fit into the 53 bits of a number. */
const placesMax = 2 ** 20;

/** Returns the names of the whole blocks of a text. Each name stands for all text from the beginning to its end. */
export function blocksOf(text: string, salt = ""): readonly number[] {
  const blocks: number[] = [];
  let crc = crc32(salt);
  for (let end = blockCharacters; end <= text.length; end += blockCharacters) {
    crc = crc32(text.slice(end - blockCharacters, end), crc);
    blocks.push(crc * placesMax + blocks.length);
  }
  return blocks;
}

/** The prefix cache of a simulated engine: it drops the least recently used block, the end of a prompt first. */
export class PrefixCache {
  readonly #blocksMax: number;
  readonly #used = new Set<number>();

  constructor(tokensMax: number) {
    this.#blocksMax = Math.floor(tokensMax / blockTokens);
  }

  /** Returns the tokens that are cached from the beginning on. */
  cachedTokens(blocks: readonly number[]): number {
    const missing = blocks.findIndex((block) => !this.#used.has(block));
    return (missing < 0 ? blocks.length : missing) * blockTokens;
  }

  keep(blocks: readonly number[]): void {
    for (const block of blocks.toReversed()) {
      this.#used.delete(block);
      this.#used.add(block);
    }
    for (const oldest of this.#used) {
      if (this.#used.size <= this.#blocksMax) return;
      this.#used.delete(oldest);
    }
  }
}
