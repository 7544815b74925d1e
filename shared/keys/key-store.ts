import type { FoundKey, KeyRecord } from "./key-record.ts";
import type { KeyId } from "./key-token.ts";
import type { PepperFingerprint } from "./pepper.ts";

const dayMs = 86_400_000;

/** How long a record outlives its expiry: until then operators see it in lists, and could still extend it. */
export const recordAfterlifeMs = 90 * dayMs;

/** `claimed` on a store that knew no pepper yet, which is the caller's from now on. */
export type PepperClaim = "claimed" | "matches" | "mismatch";

export type Revocation = "revoked" | "already_revoked" | "unknown";

/**
 * Where keys are kept. It holds no secret: neither a key's text nor the pepper. Every method fails with a Fault
 * `backend_unavailable` when the store does not answer in time, and works again as soon as the store does.
 */
export interface KeyStore {
  /** The record, a tombstone once the record has outlived its expiry by `recordAfterlifeMs`, or nothing. */
  find(id: KeyId): Promise<FoundKey>;
  /** Keeps a new record. Its id is a freshly drawn one. */
  issue(record: KeyRecord): Promise<void>;
  /** All records, revoked and lately expired ones too, the oldest first. */
  list(): Promise<readonly KeyRecord[]>;
  /** Takes a key back for good; the first time counts. Leaves no tombstone: a revoked key never counts as expired. */
  revoke(id: KeyId, atMs: number): Promise<Revocation>;
  /** Resolves when the store answers. */
  ready(): Promise<void>;
  /** Compares a pepper with the one that the store's keys were made with, so that no process works with another. */
  claimPepper(fingerprint: PepperFingerprint): Promise<PepperClaim>;
  /** Ends what the store stands on, and with it whatever else uses that. */
  close(): Promise<void>;
}
