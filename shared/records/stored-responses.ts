import type { KeyId } from "../keys/key-token.ts";

/** The longest time for which a response is stored. */
export const storedDaysMax = 30;

/** Bounds the stored responses of one key; above it the oldest go. */
export const storedResponsesMax = 10_000;

/** A response with its input, encrypted for the key that made it. The store cannot read it. */
export interface SealedResponse {
  readonly id: string;
  readonly sealed: Uint8Array;
}

/**
 * The responses that keys have made lately, for all gateways of a site. The key store deletes those of a revoked key.
 * Methods fail with a Fault `backend_unavailable` while the store is unavailable.
 */
export interface StoredResponses {
  /**
   * Stores a response for `keptMs`. One with the same id stays as it is: a resumed answer is the same again. The oldest
   * ones of the key go if it has more than `storedResponsesMax`. A key that was revoked meanwhile stores nothing. False
   * if it was not stored.
   */
  put(key: KeyId, response: SealedResponse, keptMs: number): Promise<boolean>;
  /** Returns the responses with these ids in their order, undefined in place of a missing one. */
  find(key: KeyId, ids: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Returns the bytes of all responses with these ids together. */
  bytesOf(key: KeyId, ids: readonly string[]): Promise<number>;
  /** Deletes a response. False if there is none. */
  remove(key: KeyId, id: string): Promise<boolean>;
  /** Deletes all responses whose time is over. A store that does so by itself does nothing. */
  removeExpired(): Promise<void>;
}
