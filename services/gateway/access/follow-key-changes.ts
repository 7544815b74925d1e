import { Fault } from "#shared/fault/fault.ts";
import type { KeyChanges } from "#shared/keys/key-changes.ts";
import type { FoundKey } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Log } from "#shared/process/log.ts";
import type { KnownKeys } from "./known-keys.ts";
import type { RunningRequests } from "./running-requests.ts";

interface FollowOptions {
  readonly changes: KeyChanges;
  readonly keys: Pick<KeyStore, "find">;
  readonly knownKeys: KnownKeys;
  readonly running: RunningRequests;
  readonly log: Pick<Log, "info">;
}

/**
 * Forgets every key that was changed, and ends the running requests of those that were taken back. A key that could not
 * be looked at just then is looked at again whenever the store is heard.
 */
export function followKeyChanges(options: FollowOptions): void {
  const { changes, keys, knownKeys, running, log } = options;
  const due = new Set<KeyId>();

  const lookAt = async (id: KeyId): Promise<void> => {
    due.delete(id);
    try {
      const reason = takenBack(await keys.find(id));
      if (reason === undefined || !running.has(id)) return;
      log.info({ key: id }, "a key was taken back; its running requests end");
      running.cut(id, new Fault("key_invalid", { message: reason }));
    } catch {
      due.add(id);
    }
  };
  const lookAtAll = (): void => {
    for (const id of due) void lookAt(id);
  };

  changes.follow({
    onChange(id) {
      knownKeys.forget(id);
      if (running.has(id)) void lookAt(id);
    },
    onGap() {
      knownKeys.forgetAll();
      for (const id of running.keyIds) due.add(id);
      lookAtAll();
    },
    onHeard() {
      knownKeys.heard();
      lookAtAll();
    },
    onAway: () => knownKeys.away(),
  });
}

/** Why nobody may have an answer on this key any more. One that expired meanwhile lets its requests finish. */
function takenBack(found: FoundKey): string | undefined {
  if (found.kind === "absent") return "This API key has been revoked.";
  if (found.kind === "tombstone") return undefined;
  if (found.record.revokedAt !== undefined) return "This API key has been revoked.";
  return found.record.disabledAt === undefined ? undefined : "This API key has been disabled.";
}
