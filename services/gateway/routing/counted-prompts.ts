import { LRUCache } from "lru-cache";
import { mixed, saltOf, type PromptBlocks } from "./prompt-blocks.ts";

/** Limits the prompts whose counts are remembered. */
export const countsKeptMax = 10_000;

/** The longest earlier turn of a prompt that a machine counted: its place in `turns`, and its tokens. */
export interface CountedTurn {
  readonly at: number;
  readonly promptTokens: number;
}

/** Remembers how many tokens machines counted of prompts lately. A conversation is mostly the prompt of its turn before. */
export class CountedPrompts {
  /** Tokens by the hash of the whole prompt. */
  readonly #tokens = new LRUCache<number, number>({ max: countsKeptMax });

  counted(prompt: PromptBlocks, model: string, promptTokens: number): void {
    this.#tokens.set(mixed(prompt.whole, saltOf(model, prompt.keyId)), promptTokens);
  }

  longest({ turns, keyId }: PromptBlocks, model: string): CountedTurn | undefined {
    const salt = saltOf(model, keyId);
    for (const [at, { hash }] of turns.entries()) {
      const promptTokens = this.#tokens.get(mixed(hash, salt));
      if (promptTokens !== undefined) return { at, promptTokens };
    }
    return undefined;
  }

  get size(): number {
    return this.#tokens.size;
  }
}
