import { z } from "zod";
import { dayMs } from "#shared/process/clock.ts";
import { Fault } from "../fault/fault.ts";
import { jsonIn } from "../protocol/frame-payload.ts";
import type { AuditEntry } from "./audit-entry.ts";
import type { FoundKey, KeyRecord } from "./key-record.ts";
import type { KeyId } from "../keys/key-token.ts";
import type { PepperFingerprint } from "../keys/pepper.ts";
import type { SiteGateway } from "./site-gateways.ts";

/**
 * Time for which a store keeps a record after its expiry. Until then operators see it in lists and can still extend it.
 */
export const recordAfterlifeMs = 90 * dayMs;

/** `conflict`: another writer has changed the record in the meantime. */
export type Written = "written" | "conflict";

/** Longest wait for a replica after a change that takes a right away. */
export const replicaWaitMs = 1_000;

/**
 * `none`: this store has no replicas. `unconfirmed`: the store has or had a replica, and none confirmed the change
 * within `replicaWaitMs`. If the store is lost now, the change is lost too.
 */
export type Replication = "none" | "replicated" | "unconfirmed";

/**
 * Stores keys and the audit trail. It contains no secret: neither the text of a key nor the pepper. Every method fails
 * with a Fault `backend_unavailable` when the store does not answer in time. It works again as soon as the store does.
 * A change and its audit entry are written together or not at all.
 *
 * The first issued key founds a store: the store then records the peppers of its keys. A store without that record was
 * emptied, or is the wrong store. It judges no key, because the verdict on every key would be `invalid`.
 */
export interface KeyStore {
  /**
   * Returns the record, or a tombstone after the record has outlived its expiry by `recordAfterlifeMs`, or `absent`.
   */
  find(id: KeyId): Promise<FoundKey>;
  /** Stores a new record. Its id has just been generated. */
  issue(record: KeyRecord, entry: AuditEntry): Promise<void>;
  /**
   * Replaces a record by one whose version is one higher. A revoked record leaves no tombstone, and its stored responses
   * are deleted in the same step.
   */
  replace(record: KeyRecord, entry: AuditEntry): Promise<Written>;
  /**
   * Removes the tombstone of a key whose record has lapsed, and its stored responses. A store that is not founded only writes the entry, for
   * gateways that still know the key.
   */
  forget(id: KeyId, entry: AuditEntry): Promise<Written>;
  /** Returns all records, the oldest first, including revoked and recently expired ones. */
  list(unread?: UnreadRecord[]): Promise<readonly KeyRecord[]>;
  /** Returns the latest entries of the audit trail, the oldest of them first. `keys` selects the entries of these. */
  log(query: LogQuery, unread?: UnreadRecord[]): Promise<readonly AuditEntry[]>;
  /** Returns the gateways that serve the site, or that served an embedded store last. */
  gateways(): Promise<readonly SiteGateway[]>;
  /** Resolves when the store answers, also when it is not founded. */
  ready(): Promise<void>;
  /**
   * Returns whether the store is founded. `wallMs` is the time of the store's host, in milliseconds since 1970, if that
   * is another host.
   */
  state(): Promise<{ readonly founded: boolean; readonly wallMs?: number | undefined }>;
  /** Returns the peppers of the keys, the latest first. Empty in a store that holds no keys yet. */
  peppers(): Promise<readonly PepperFingerprint[]>;
  /** Records that keys are made with this pepper too from now on. A store that is not founded cannot record it. */
  addPepper(fingerprint: PepperFingerprint): Promise<void>;
  /** Waits until a replica has all earlier writes, and returns whether one has them. It never fails. */
  awaitReplica(): Promise<Replication>;
  /** Closes the connection or database of the store, also for its other users. */
  close(): Promise<void>;
}

export interface LogQuery {
  readonly entriesMax: number;
  readonly keys?: readonly KeyId[] | undefined;
  /** Judges an entry as it is stored, before it is validated. */
  readonly fits?: ((stored: { readonly [Field in keyof AuditEntry]?: unknown }) => boolean) | undefined;
}

/** True if an entry of the trail, as JSON, fits a query. */
export function fitsQuery({ fits }: LogQuery, text: unknown): boolean {
  return fits === undefined || fits(Object(jsonIn(String(text))));
}

/**
 * Stores records by their names beside the keys, with one audit trail for both. It fails as a `KeyStore` does. A store
 * that no key has founded accepts no record.
 */
export interface RecordStore<Kept> {
  /** Returns all records, sorted by name. */
  list(unread?: UnreadRecord[]): Promise<readonly Kept[]>;
  find(name: string): Promise<Kept | undefined>;
  /** Stores a record in place of the one whose version is one lower. Version 1 replaces no record. */
  write(record: Kept, entry: AuditEntry): Promise<Written>;
  /** Removes the record if its version has not changed. */
  remove(record: Kept, entry: AuditEntry): Promise<Written>;
}

/** Bounds the attempts of one change. Others rarely change the same record, and each attempt lets one of them succeed. */
const attemptsMax = 100;

/** Repeats a change until no other writer got ahead of it. Throws a fault with the message `contended` otherwise. */
export async function retryConflicts<Result>(
  attempt: () => Promise<Result | "conflict">,
  contended: string,
): Promise<Result> {
  for (let attempts = 1; attempts <= attemptsMax; attempts += 1) {
    const result = await attempt();
    if (result !== "conflict") return result;
  }
  throw new Fault("backend_unavailable", { message: contended });
}

export class UnfoundedStore extends Fault {}

/** Returns the fault of a store without a record of its peppers. Such a store gives no verdict. */
export function unfoundedStore(): UnfoundedStore {
  return new UnfoundedStore("backend_unavailable", {
    message: "The key store holds no keys: it was emptied, or is not the right one.",
    internal: "the key store was never used, or was emptied; restore it, or issue a key to begin anew",
  });
}

/**
 * Returns the fault for a key that was made with a pepper unknown to the store. No other process could judge that key.
 */
export function foreignPepper(): Fault {
  return new Fault("backend_unavailable", {
    message: "The keys in this store are made with another pepper.",
    internal: "another process has begun this store with another pepper meanwhile",
  });
}

/**
 * Parses stored data. Data that cannot be parsed was written by another version, or is damaged. The key cannot be
 * judged then, and that is a failure of the store, not of the caller.
 */
export function readStored<Schema extends z.ZodType>(schema: Schema, read: () => unknown): z.output<Schema> {
  try {
    return schema.parse(read());
  } catch (error) {
    throw new Fault("backend_unavailable", {
      message: "The key store holds a record that this version of Trunkline cannot read.",
      internal: onOneLine(error),
    });
  }
}

/** A record that this version cannot read. Lists leave it out and add it to `unread`, so that one record hides no other. */
export interface UnreadRecord {
  /** The name of the record: the id of a key or a session, the place of an entry of the trail. */
  readonly name: string;
  /** Undefined if it is no JSON. */
  readonly stored: unknown;
}

/** Parses the records of a list. The values of each row are the name of a record and its JSON. */
export function readEach<Schema extends z.ZodType>(
  schema: Schema,
  rows: Iterable<object>,
  unread: UnreadRecord[] = [],
): z.output<Schema>[] {
  return [...rows].flatMap((row) => {
    const [name, text]: unknown[] = Object.values(row);
    const stored = jsonIn(String(text));
    const { success, data } = schema.safeParse(stored);
    if (!success) unread.push({ name: String(name), stored });
    return success ? [data] : [];
  });
}

/** Parses one stored record (JSON). */
export function readRecord<Schema extends z.ZodType>(schema: Schema, text: unknown): z.output<Schema> {
  return readStored(schema, () => JSON.parse(String(text)));
}

function onOneLine(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error).replace(/\s+/g, " ");
  return error instanceof Error ? error.message : String(error);
}
