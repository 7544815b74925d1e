import { Fault } from "../fault/fault.ts";
import type { Clock } from "../process/clock.ts";
import type { Actor, AuditAction, AuditEntry } from "./audit-entry.ts";
import { type KeyStore, type Replication, retryConflicts } from "./key-store.ts";
import type { NamedRecord, RecordForm, StoreAt } from "./record-form.ts";

export interface RecordChanged<Kept> {
  readonly outcome: "changed" | "unchanged";
  readonly record: Kept;
  readonly replication: Replication;
}

export interface RecordSite {
  /** A change may take a right away. It waits for a replica, as the revocation of a key does. */
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

const contended = "The record was changed at the same time. Try again.";

/** Returns the record of a name, or throws that there is none. */
export async function findRecord<Kept, At extends string>(
  form: RecordForm<Kept, At>,
  name: string,
  site: StoreAt<Kept, At>,
): Promise<Kept> {
  return assertKnown(form, name, await site[form.at].find(name));
}

export function assertKnown<Kept>(form: RecordForm<Kept>, name: string, record: Kept | undefined): Kept {
  if (record !== undefined) return record;
  throw new Fault(`${form.noun}_not_found`, { message: form.unknown(name), param: form.about });
}

/**
 * Sets the fields that `change` returns of a record as it is at that moment, or makes it. Nothing is written if it was so before.
 * `change` may throw a refusal.
 */
export async function setRecord<Kept extends NamedRecord, At extends string>(
  form: RecordForm<Kept, At>,
  { name, action = `${form.noun}_set` }: { readonly name: string; readonly action?: AuditAction },
  change: (before: Kept | undefined, at: number) => Partial<Kept> | Promise<Partial<Kept>>,
  site: RecordSite & StoreAt<Kept, At>,
): Promise<RecordChanged<Kept>> {
  const store = site[form.at];
  const attempt = async () => {
    const before = await store.find(name);
    const at = site.clock.wall();
    const fields = await change(before, at);
    const after = form.schema.parse({ name, version: 1, createdAt: at, changedAt: at, ...before, ...fields });
    if (before === undefined && (await store.list()).length >= form.max)
      throw new Fault(`${form.noun}_change_refused`, { message: form.full });
    if (before !== undefined && JSON.stringify(after) === JSON.stringify(before))
      return { outcome: "unchanged", record: before } as const;
    const record = { ...after, version: (before?.version ?? 0) + 1, changedAt: at };
    const detail = { ...form.detail(after), ...(before && { was: form.detail(before) }) };
    const written = await store.write(record, entryOf(form, { name, action, detail, at }, site));
    return written === "written" ? ({ outcome: "changed", record } as const) : "conflict";
  };
  return { ...(await retryConflicts(attempt, contended)), replication: await site.keys.awaitReplica() };
}

/** Removes a record for every gateway. Throws if there is none. */
export async function removeRecord<Kept extends NamedRecord, At extends string>(
  form: RecordForm<Kept, At>,
  name: string,
  site: RecordSite & StoreAt<Kept, At>,
): Promise<{ readonly replication: Replication }> {
  const attempt = async () => {
    const record = await findRecord(form, name, site);
    const change = { name, action: `${form.noun}_removed`, detail: { was: form.detail(record) } } as const;
    const entry = entryOf(form, { ...change, at: site.clock.wall() }, site);
    return (await site[form.at].remove(record, entry)) === "written" ? record : "conflict";
  };
  await retryConflicts(attempt, contended);
  return { replication: await site.keys.awaitReplica() };
}

function entryOf<Kept>(
  { about, titled = (name) => name }: RecordForm<Kept>,
  change: Pick<AuditEntry, "at" | "name" | "action" | "detail">,
  { actor }: RecordSite,
): AuditEntry {
  const { name } = change;
  return { ...actor, ...change, [about]: name, name: titled(name).slice(0, nameMax) };
}

/** The most characters of a name in the trail. */
const nameMax = 100;
