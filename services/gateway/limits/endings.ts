import type { Settled } from "./limits.ts";

/**
 * Ends of a key's requests, on their way to the store of its limits. The caller calls `heard` or `unheard` when the
 * outcome is known.
 */
export interface Telling {
  /** The name of the books' batch that will contain these ends. */
  readonly batch: string;
  readonly ended: readonly Settled[];
  /**
   * The store has freed the holds. It keeps the tokens spent of a budget under the name of the batch until that is
   * written.
   */
  heard(): void;
  /** The outcome is unknown: these ends are reported again. */
  unheard(): void;
}

/**
 * Ends of requests that the books may not have written yet. The store gets them with the next demand of the key. A
 * client may ask again right after its answer: it is not refused for a seat or budget that its last request no longer
 * needs. Each end is reported once.
 */
export interface Endings {
  /** Returns at most `endsMax` ends of a key that were not reported. */
  tell(keyId: string, endsMax: number): readonly Telling[];
}
