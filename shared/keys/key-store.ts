import type { AuditEntry } from "./audit-entry.ts";
import type { FoundKey, KeyRecord } from "./key-record.ts";
import type { KeyId } from "./key-token.ts";
import type { PepperFingerprint } from "./pepper.ts";

const dayMs = 86_400_000;

/** How long a record outlives its expiry: until then operators see it in lists, and can still extend it. */
export const recordAfterlifeMs = 90 * dayMs;

/** `conflict`: somebody else has changed the record meanwhile. */
export type Written = "written" | "conflict";

/**
 * Where keys are kept, and the trail of what was done to them. It holds no secret: neither a key's text nor the pepper.
 * Every method fails with a Fault `backend_unavailable` when the store does not answer in time, and works again as soon
 * as the store does. A change and its audit entry are written together or not at all.
 *
 * The first key that is issued founds a store: it notes which peppers its keys are made with. A store without that note
 * was emptied, or is not the right one: it judges no key, since the answer would be «invalid» for all of them.
 */
export interface KeyStore {
  /** The record, a tombstone once the record has outlived its expiry by `recordAfterlifeMs`, or nothing. */
  find(id: KeyId): Promise<FoundKey>;
  /** Keeps a new record. Its id is a freshly drawn one. */
  issue(record: KeyRecord, entry: AuditEntry): Promise<void>;
  /** Puts a record, whose version is one higher, in the place of the one before. Without a tombstone if it is revoked. */
  replace(record: KeyRecord, entry: AuditEntry): Promise<Written>;
  /** Removes the tombstone of a key whose record has lapsed. */
  forget(id: KeyId, entry: AuditEntry): Promise<Written>;
  /** All records, revoked and lately expired ones too, the oldest first. */
  list(): Promise<readonly KeyRecord[]>;
  /** The latest entries of the audit trail, the oldest of them first; of one key, if one is named. */
  log(wish: { readonly entriesMax: number; readonly key?: KeyId | undefined }): Promise<readonly AuditEntry[]>;
  /** Resolves when the store answers, and is founded or has never been. */
  ready(): Promise<void>;
  /** The peppers that the keys were made with, the latest first; none in a store that holds no keys yet. */
  peppers(): Promise<readonly PepperFingerprint[]>;
  /** Notes that keys are made with this pepper too from now on. A store without keys has nothing to be noted in. */
  addPepper(fingerprint: PepperFingerprint): Promise<void>;
  /** Ends what the store stands on, and with it whatever else uses that. */
  close(): Promise<void>;
}
