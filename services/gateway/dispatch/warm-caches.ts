import type { PromptPrefixes } from "../asked/prompt-prefixes.ts";
import type { Target } from "./open-job.ts";

/** So many beginnings of prompts are remembered, of whole fleets and all models together. */
export const prefixesKeptMax = 10_000;
/** Runtimes let go of what nobody asked for in a while. */
const warmForMs = 600_000;
/** A beginning that many share may lie in the caches of so many machines. */
const machinesPerPrefixMax = 8;

/** By machine: which boot of it, and when it was asked last. */
type Boots = Map<string, { readonly epoch: string; readonly atMs: number }>;

/**
 * Which machines have computed which beginnings of prompts lately, so that a conversation goes back to the one that has
 * it in its cache. It holds hashes and no text, and to lose it costs nothing but time.
 */
export class WarmCaches {
  /** Who knows each beginning. What was used last is the last. */
  readonly #boots = new Map<string, Boots>();

  /** The machine has answered a request that begins like this. */
  answered({ left }: PromptPrefixes, target: Target, nowMs: number): void {
    for (const prefix of left) {
      const boots: Boots = this.#boots.get(prefix) ?? new Map();
      boots.delete(target.machine);
      boots.set(target.machine, { epoch: target.epoch, atMs: nowMs });
      dropOldest(boots, machinesPerPrefixMax);
      this.#boots.delete(prefix);
      this.#boots.set(prefix, boots);
    }
    dropOldest(this.#boots, prefixesKeptMax);
  }

  /** The machines that know the longest beginning of such a request that any machine knows, with their epochs. */
  knowing({ known }: PromptPrefixes, nowMs: number): ReadonlyMap<string, string> {
    for (const prefix of known) {
      const boots = this.#boots.get(prefix) ?? [];
      const warm = [...boots].filter(([, { atMs }]) => nowMs - atMs <= warmForMs);
      if (warm.length > 0) return new Map(warm.map(([machine, { epoch }]) => [machine, epoch]));
    }
    return new Map();
  }

  get size(): number {
    return this.#boots.size;
  }
}

function dropOldest(kept: Map<string, unknown>, countMax: number): void {
  for (const oldest of kept.keys()) {
    if (kept.size <= countMax) return;
    kept.delete(oldest);
  }
}
