import { Fault } from "#shared/fault/fault.ts";
import type { KeyChanges } from "#shared/keys/key-changes.ts";
import type { FoundKey } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Log } from "#shared/process/log.ts";
import type { KnownKeys } from "./known-keys.ts";
import type { NewestRecords } from "./newest-records.ts";
import type { RunningRequests } from "./running-requests.ts";

interface FollowOptions {
  readonly changes: KeyChanges;
  readonly keys: Pick<KeyStore, "find">;
  readonly knownKeys: KnownKeys;
  readonly newest?: NewestRecords | undefined;
  readonly running: RunningRequests;
  /** Receives every change of a machine's record, and every sign of life of the store. */
  readonly machines: { changed(): void; heard(): void };
  readonly log: Pick<Log, "info">;
}

const revoked = "This API key has been revoked.";

/**
 * Forgets every changed key and ends the running requests of revoked and disabled keys. Keeps the records of keys that
 * lost a right. A key that could not be read is read again whenever the store is heard from.
 */
export function followKeyChanges(options: FollowOptions): void {
  const { changes, keys, knownKeys, newest, running, machines, log } = options;
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
    onMachineChange: () => machines.changed(),
    onGap() {
      machines.changed();
      knownKeys.forgetAll();
      for (const id of running.keyIds) due.add(id);
      lookAtAll();
    },
    onHeard() {
      knownKeys.heard();
      machines.heard();
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
