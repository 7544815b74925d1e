import type { KeyId } from "../keys/key-token.ts";

/** The longest time for which a response is stored. */
export const storedDaysMax = 30;

/** Texts that are stored for a key and deleted with it: responses, and the captured content of requests. Each shelf has its own sums. */
export const shelves = ["response", "capture"] as const;
export type Shelf = (typeof shelves)[number];

/** Bounds the stored responses of one key; above it the oldest go. */
export const storedResponsesMax = 10_000;

/** Bytes of the stored responses of one key, and of a whole site, unless the operator says otherwise. */
export const storedBytesDefault = { key: 256 * 1024 * 1024, site: 4 * 1024 * 1024 * 1024 };

/** How long a response is stored, and the bytes that the responses of its key and of the site may have. */
export interface StoringTerms {
  readonly keptMs: number;
  readonly keyBytesMax: number;
  readonly siteBytesMax: number;
}

/**
 * The outcome of a put. `known`: there is one with this id, which stays as it is. `full`: the site has no room left.
 * `closed`: the key was revoked meanwhile.
 */
export type PutOutcome = "stored" | "known" | "full" | "closed";

/** Time for which a position of a conversation is held for its turn. */
export const positionHeldMs = 10_000;

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
   * Stores a response. One with the same id stays as it is: a resumed answer is the same again. The oldest ones of the
   * key go if it has more than `storedResponsesMax`, or more than `keyBytesMax` bytes.
   */
  put(key: KeyId, response: SealedResponse, terms: StoringTerms): Promise<PutOutcome>;
  /**
   * Holds the first free position of a conversation, for `positionHeldMs`, and returns the id under which its turn is put
   * there. Undefined if the conversation is gone or has no position left. An older gateway holds none: a put may find that
   * it has taken the position.
   */
  holdPosition(key: KeyId, conversation: string, positionsMax: number): Promise<string | undefined>;
  /** Returns the responses with these ids in their order, undefined in place of a missing one. */
  find(key: KeyId, ids: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Returns the bytes of all responses with these ids together. */
  bytesOf(key: KeyId, ids: readonly string[]): Promise<number>;
  /** Returns the keys that have some. */
  holders(): Promise<readonly KeyId[]>;
  /** Deletes a response. False if there is none. */
  remove(key: KeyId, id: string): Promise<boolean>;
  /** Deletes all responses whose time is over, and counts those that an older gateway stored. */
  removeExpired(): Promise<void>;
}
