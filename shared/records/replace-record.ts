import type { Clock } from "../process/clock.ts";
import type { Actor, AuditEntry } from "./audit-entry.ts";
import { type KeyStore, type RecordStore, type Replication, retryConflicts } from "./key-store.ts";

export interface RecordReplaced<Kept> {
  readonly outcome: "changed" | "unchanged";
  readonly record: Kept;
  readonly replication: Replication;
}

interface Dependencies<Kept> {
  readonly store: RecordStore<Kept>;
  /** A change may take a right away. It waits for a replica, as the revocation of a key does. */
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

/** A record and the entry of its change. The same record as before stands for no change. */
type RecordReplacing<Kept> = (
  before: Kept | undefined,
  at: number,
) => Promise<{ readonly after: Kept; readonly entry: Omit<AuditEntry, "at" | "by" | "request"> }>;

/** Replaces a record by what `change` makes of it as it is at that moment. `change` may throw a refusal. */
export async function replaceRecord<Kept extends { readonly version: number; readonly changedAt: number }>(
  name: string,
  change: RecordReplacing<Kept>,
  { store, keys, clock, actor }: Dependencies<Kept>,
): Promise<RecordReplaced<Kept>> {
  const attempt = async () => {
    const before = await store.find(name);
    const at = clock.wall();
    const { after, entry } = await change(before, at);
    if (after === before) return { outcome: "unchanged", record: after } as const;
    const record = { ...after, version: (before?.version ?? 0) + 1, changedAt: at };
    const written = await store.write(record, { at, ...actor, ...entry });
    return written === "written" ? ({ outcome: "changed", record } as const) : "conflict";
  };
  const made = await retryConflicts(attempt, "The record was changed at the same time. Try again.");
  return { ...made, replication: await keys.awaitReplica() };
}
