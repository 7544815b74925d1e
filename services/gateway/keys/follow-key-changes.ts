import type { KeyChanges } from "#shared/records/key-changes.ts";
import { Fault } from "#shared/fault/fault.ts";
import { takesAway, type AuditAction, type RecordKind } from "#shared/records/audit-entry.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { FoundKey, KeyRecord } from "#shared/records/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Log } from "#shared/process/log.ts";
import { setNewest } from "#shared/process/set-newest.ts";
import type { RunningRequests } from "./authenticate.ts";
import type { KnownKeys } from "./known-keys.ts";

interface FollowKeysOptions {
  readonly changes: KeyChanges;
  readonly keys: Pick<KeyStore, "find">;
  readonly knownKeys: KnownKeys;
  readonly newest?: NewestRecords | undefined;
  readonly running: RunningRequests;
  /** The records beside keys that this gateway follows, by their kinds. */
  readonly records: { readonly [Kind in RecordKind]?: FollowedRecords };
  readonly log: Pick<Log, "info">;
}

/** Receives the name of every changed record, or nothing when all may have changed, and every sign of life of the store. */
interface FollowedRecords {
  changed(name?: string): void;
  heard(): void;
}

const revoked = "This API key has been revoked.";

/**
 * Forgets every changed key and ends the running requests of revoked and disabled keys. Keeps the records of keys that
 * lost a right. A key that could not be read is read again whenever the store is heard from.
 */
export function followKeyChanges(options: FollowKeysOptions): void {
  const { changes, keys, knownKeys, newest, running, records, log } = options;
  const followed = Object.values(records);
  const due = new Set<KeyId>();

  const cut = (id: KeyId, reason: string): void => {
    if (!running.has(id)) return;
    log.info({ key: id }, "a key was taken back; its running requests end");
    running.cut(id, new Fault("key_invalid", { message: reason }));
  };
  const lookAt = async (id: KeyId): Promise<void> => {
    due.delete(id);
    try {
      const found = await keys.find(id);
      newest?.keep(found);
      const reason = takenBack(found);
      if (reason !== undefined) cut(id, reason);
    } catch {
      due.add(id);
    }
  };
  const lookAtAll = (): void => {
    for (const id of due) void lookAt(id);
  };

  changes.follow({
    onChange(id, action) {
      knownKeys.forget(id);
      const isToBeKept = newest?.hear(id, action) ?? false;
      if (action === "revoked") cut(id, revoked);
      else if (isToBeKept || running.has(id)) void lookAt(id);
    },
    onRecordChange: (kind, name) => records[kind]?.changed(name),
    onGap() {
      for (const each of followed) each.changed();
      knownKeys.forgetAll();
      for (const id of running.keyIds) due.add(id);
      lookAtAll();
    },
    onHeard() {
      knownKeys.heard();
      for (const each of followed) each.heard();
      lookAtAll();
    },
    onAway: () => knownKeys.away(),
  });
}

/**
 * Returns why the running requests of a key must end, or undefined. A key that expired meanwhile lets its requests
 * finish.
 */
function takenBack(found: FoundKey): string | undefined {
  if (found.kind === "absent") return revoked;
  if (found.kind === "tombstone") return undefined;
  if (found.record.revokedAt !== undefined) return revoked;
  return found.record.disabledAt === undefined ? undefined : "This API key has been disabled.";
}

/** Keys that lost a right while this gateway ran and whose records it keeps; above it the oldest is forgotten. */
export const newestRecordsMax = 10_000;

/**
 * The key store as this gateway judges keys by it. A store may fall back to an older copy of itself. This may be a
 * replica that was promoted without the latest changes, or a backup. A loss of a right that was received here stays in
 * force for as long as this gateway runs. Only a record of the same version or a newer one replaces the kept record.
 */
export class NewestRecords implements Pick<KeyStore, "find"> {
  readonly #keys: Pick<KeyStore, "find">;
  readonly #log: Pick<Log, "warn">;
  readonly #newest = new Map<KeyId, KeyRecord | "revoked">();
  readonly #toldLost = new Set<KeyId>();
  #toldFull = false;
  #foundedOnce = false;

  constructor(options: { readonly keys: Pick<KeyStore, "find">; readonly log: Pick<Log, "warn"> }) {
    this.#keys = options.keys;
    this.#log = options.log;
  }

  async find(id: KeyId): Promise<FoundKey> {
    const newest = this.#newest.get(id);
    if (newest === undefined) return this.#ask(id);
    if (newest === "revoked") {
      const found = await this.#keys.find(id).catch(() => undefined);
      if (found?.kind === "record" && found.record.revokedAt === undefined) this.#tellLost(id);
      return { kind: "absent" };
    }
    const found = await this.#ask(id);
    if (found.kind !== "record" || found.record.version >= newest.version) return found;
    this.#tellLost(id);
    return { kind: "record", record: newest };
  }

  /** True if the store ever judged a key for this gateway: a store that is not founded judges none. */
  get foundedOnce(): boolean {
    return this.#foundedOnce;
  }

  /** Notes a change; must be called for every one. Returns true if the record has to be read, for `keep`. */
  hear(id: KeyId, action: AuditAction | undefined): boolean {
    if (action === "revoked") {
      this.#set(id, "revoked");
      return false;
    }
    const newest = this.#newest.get(id);
    return newest === undefined ? takesAway(action) : newest !== "revoked";
  }

  /** Keeps a record that was read after `hear`. */
  keep(found: FoundKey): void {
    if (found.kind !== "record") return;
    const { record } = found;
    const newest = this.#newest.get(record.id);
    if (newest === "revoked" || (newest !== undefined && newest.version >= record.version)) return;
    this.#set(record.id, record.revokedAt === undefined ? record : "revoked");
  }

  async #ask(id: KeyId): Promise<FoundKey> {
    const found = await this.#keys.find(id);
    this.#foundedOnce = true;
    return found;
  }

  #set(id: KeyId, newest: KeyRecord | "revoked"): void {
    this.#toldLost.delete(id);
    const oldest = setNewest(this.#newest, [id, newest], newestRecordsMax);
    if (oldest === undefined) return;
    this.#toldLost.delete(oldest);
    if (!this.#toldFull) this.#log.warn({ newestRecordsMax }, "more keys lost rights than this gateway keeps in mind");
    this.#toldFull = true;
  }

  #tellLost(id: KeyId): void {
    if (this.#toldLost.has(id)) return;
    this.#toldLost.add(id);
    this.#log.warn(
      { key: id },
      "the key store lost a change that took a right from this key: this gateway keeps to it until it ends; make the change again",
    );
  }
}
