import type { PromptPrefixes } from "../asked/prompt-prefixes.ts";
import type { Target } from "./open-job.ts";

/** So many beginnings of prompts are remembered, of whole fleets and all models together. */
export const prefixesKeptMax = 10_000;
/** Runtimes let go of what nobody asked for in a while. */
const warmForMs = 600_000;
/** A beginning that many share may lie in the caches of so many machines. */
const machinesPerPrefixMax = 8;

/** Which boot of a machine was asked, and when. */
interface Knower extends Target {
  readonly atMs: number;
}

/**
 * Which machines have computed which beginnings of prompts lately, so that a conversation goes back to the one that has
 * it in its cache. It holds hashes and no text, and to lose it costs nothing but time.
 */
export class WarmCaches {
  /** Who knows each beginning, in lists, since nearly all are of one; who was asked last is the last. */
  readonly #knowers = new Map<string, readonly Knower[]>();
  /**
   * The beginnings as they were used. It stays where it is, at the one that was used the longest ago: to begin anew would pass
   * by all that is gone, which of a full map are thousands.
   */
  readonly #oldest = this.#knowers.keys();

  /** The machine has answered a request that begins like this. */
  answered({ left }: PromptPrefixes, { machine, epoch }: Target, nowMs: number): void {
    for (const prefix of left) {
      const known = this.#knowers.get(prefix);
      const knower: Knower = { machine, epoch, atMs: nowMs };
      if (known === undefined) this.#knowers.set(prefix, [knower]);
      else this.#renew(prefix, [...known.filter((each) => each.machine !== machine), knower]);
      if (this.#knowers.size > prefixesKeptMax) this.#dropOldest();
    }
  }

  /** The machines that know the longest beginning of such a request that any machine knows, with their epochs. */
  knowing({ known }: PromptPrefixes, nowMs: number): ReadonlyMap<string, string> {
    for (const prefix of known) {
      const knowers = this.#knowers.get(prefix) ?? [];
      const warm = knowers.filter(({ atMs }) => nowMs - atMs <= warmForMs);
      if (warm.length > 0) return new Map(warm.map(({ machine, epoch }) => [machine, epoch]));
    }
    return new Map();
  }

  get size(): number {
    return this.#knowers.size;
  }

  #renew(prefix: string, knowers: readonly Knower[]): void {
    // Which one was used last matters only where one may have to go soon.
    if (this.#knowers.size > prefixesKeptMax / 2) this.#knowers.delete(prefix);
    this.#knowers.set(prefix, knowers.slice(-machinesPerPrefixMax));
  }

  #dropOldest(): void {
    const { value: oldest } = this.#oldest.next();
    if (oldest !== undefined) this.#knowers.delete(oldest);
  }
}
