import type { KeyChanged } from "#shared/keys/change-key.ts";
import { replicaWaitMs, type Replication } from "#shared/keys/key-store.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

/**
 * Returns the record after a change, or undefined when the record was deleted. Throws a `StartFailure` for a change
 * that failed.
 */
export function changedRecord(
  changed: KeyChanged,
  { id, place }: { readonly id: KeyId; readonly place: string },
): KeyRecord | undefined {
  switch (changed.outcome) {
    case "changed":
    case "unchanged":
      return changed.record;
    case "forgotten":
      return undefined;
    case "refused":
      throw new StartFailure(exitCodes.failed, `The key ${id} ${changed.reason}.`);
    case "unknown":
      throw noSuchKey(id, place);
  }
}

/** Returns a warning about a change that a failover of the store can lose. Empty for any other change. */
export function replicationLine({ replication }: { readonly replication?: Replication }): string {
  if (replication !== "unconfirmed") return "";
  return `No replica of Redis confirmed this within ${replicaWaitMs} ms (replicaWaitMs): a failover now can undo it. Repeat it until this line stays away; if Redis has no replica any more, remove the name trunkline:replica from it.\n`;
}

export function noSuchKey(id: KeyId, place: string): StartFailure {
  return new StartFailure(exitCodes.failed, `There is no key ${id} in ${place}: \`trunkline keys list\` shows all.`);
}
