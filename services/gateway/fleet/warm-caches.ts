import type { PromptPrefixes } from "./prompt-prefixes.ts";
import type { Target } from "./roster.ts";

/** Limits the prefixes that are remembered, for whole fleets and all models together. */
export const prefixesKeptMax = 10_000;
/** Time after which a runtime is expected to have dropped an unused prefix. */
const warmForMs = 600_000;
/** Limits the machines remembered for one prefix: a shared prefix may lie in the caches of many machines. */
const machinesPerPrefixMax = 8;

/** The epoch of a machine that answered a prefix, and when. */
interface Knower extends Target {
  readonly atMs: number;
}

/**
 * Remembers which machines lately computed which prefixes, so that a conversation returns to the machine that has it
 * cached. It holds hashes and no text, and losing it costs only time. Prefixes of two keys never match unless the
 * operator lets keys share. Otherwise the machine of an answer would reveal to one key that another key sent the same
 * prompt.
 */
export class WarmCaches {
  /** The machines that know each prefix, the latest last. Lists serve, since nearly all have one entry. */
  readonly #knowers = new Map<string, readonly Knower[]>();
  /**
   * Iterates over the prefixes in the order of their use, and stays at the least recently used one. A new iterator
   * would pass over all deleted entries, which are thousands in a full map.
   */
  readonly #oldest = this.#knowers.keys();

  /** Notes that a machine answered a request with these prefixes. */
  answered({ left, keyId }: PromptPrefixes, { machine, epoch }: Target, nowMs: number): void {
    for (const beginning of left) {
      const prefix = nameOf(beginning, keyId);
      const known = this.#knowers.get(prefix);
      const knower: Knower = { machine, epoch, atMs: nowMs };
      if (known === undefined) this.#knowers.set(prefix, [knower]);
      else this.#renew(prefix, [...known.filter((each) => each.machine !== machine), knower]);
      if (this.#knowers.size > prefixesKeptMax) this.#dropOldest();
    }
  }

  /** Returns the machines, with their epochs, that know the longest prefix of a request that any machine knows. */
  knowing({ known, keyId }: PromptPrefixes, nowMs: number): ReadonlyMap<string, string> {
    for (const prefix of known) {
      const knowers = this.#knowers.get(nameOf(prefix, keyId)) ?? [];
      const warm = knowers.filter(({ atMs }) => nowMs - atMs <= warmForMs);
      if (warm.length > 0) return new Map(warm.map(({ machine, epoch }) => [machine, epoch]));
    }
    return new Map();
  }

  get size(): number {
    return this.#knowers.size;
  }

  #renew(prefix: string, knowers: readonly Knower[]): void {
    // The order of use matters only when a prefix may be dropped soon.
    if (this.#knowers.size > prefixesKeptMax / 2) this.#knowers.delete(prefix);
    this.#knowers.set(prefix, knowers.slice(-machinesPerPrefixMax));
  }

  #dropOldest(): void {
    const { value: oldest } = this.#oldest.next();
    if (oldest !== undefined) this.#knowers.delete(oldest);
  }
}

function nameOf(prefix: string, keyId: string | undefined): string {
  return keyId === undefined ? prefix : `${keyId} ${prefix}`;
}
