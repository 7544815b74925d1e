import type { Settled } from "./limits.ts";

/** Ends of a key's requests, on their way to where its limits are kept. One of the two is said when the way is over. */
export interface Telling {
  /** Names the batch of the books that will have them. */
  readonly batch: string;
  readonly ended: readonly Settled[];
  /** What they held is free, and what they spent of a budget stands under the name of the batch until that is written. */
  heard(): void;
  /** Nobody knows what came of it: they are told again. */
  unheard(): void;
}

/**
 * What has ended and may not be written in the books yet: a client that asks again as soon as it has its answer is not
 * refused for the seat, or the budget, that its last request does not need any more. Each end is told once.
 */
export interface Endings {
  /** At most so many ends of a key that were not told. */
  tell(keyId: string, endsMax: number): readonly Telling[];
}
