import { Fault } from "../fault/fault.ts";
import type { AuditEntry } from "./audit-entry.ts";
import type { RecordChanged, RecordSite } from "./change-record.ts";
import { retryConflicts, type Written } from "./key-store.ts";
import type { KeyId } from "../keys/key-token.ts";
import { isoTime } from "../process/clock.ts";
import { machineRecord, machineRecordsMax, type MachineRecord, type MachineStore } from "./machine-record.ts";

export type MachineChange = NewRecordChange | KnownRecordChange;

/** A change that makes a record if there is none. */
type NewRecordChange =
  /** The models that the machine may offer; undefined permits all. */
  | { readonly action: "machine_set"; readonly models: readonly string[] | undefined }
  /** A join line was made. `models` undefined leaves the permitted models as they are. */
  | {
      readonly action: "machine_paired";
      readonly join: JoinToKeep;
      readonly models?: readonly string[] | undefined;
      readonly external?: true | undefined;
    }
  | { readonly action: "machine_cordoned"; readonly reason: string; readonly drains?: true | undefined }
  /** The labels of the machine, in place of those before. */
  | { readonly action: "machine_labelled"; readonly labels: readonly string[] }
  /** The machine's models run elsewhere, or not any more. */
  | { readonly action: "machine_external"; readonly external: boolean };

type KnownRecordChange =
  /** The machine used its join line and has this key from now on. */
  | { readonly action: "machine_joined"; readonly publicKey: string; readonly from: string }
  /** Somebody with another key tried to use the join line again. */
  | { readonly action: "machine_join_reused"; readonly from: string }
  | { readonly action: "machine_renamed"; readonly name: string }
  | { readonly action: "machine_revoked" }
  | { readonly action: "machine_uncordoned" };

interface JoinToKeep {
  readonly id: string;
  readonly key: string;
  readonly expiresAt: number;
  readonly admin?: KeyId | undefined;
}

export type AppliedMachineChange =
  | { readonly outcome: "changed"; readonly record: MachineRecord; readonly detail?: Readonly<Record<string, unknown>> }
  /** The change has no effect: the record already has the requested values. */
  | { readonly outcome: "unchanged"; readonly record: MachineRecord }
  /** The change is not allowed. `reason` follows «The machine attic …» in a sentence. */
  | { readonly outcome: "refused"; readonly reason: string }
  /** There is no record, and this change makes none. */
  | { readonly outcome: "unknown" };

type ChangedRecord = (
  fields: Partial<MachineRecord>,
  detail?: Readonly<Record<string, unknown>>,
) => AppliedMachineChange;

const everyModel = ["*"];

export const defaultCordonReason = "its operator gave no reason";

/** Returns the record of the machine `name` after a change, or why the change is refused. */
export function applyMachineChange(
  before: MachineRecord | undefined,
  change: MachineChange,
  { name, at, by }: { readonly name: string; readonly at: number; readonly by: string },
): AppliedMachineChange {
  const changed: ChangedRecord = (fields, detail) => {
    const version = (before?.version ?? 0) + 1;
    const merged = { ...before, name, createdAt: before?.createdAt ?? at, ...fields, version, changedAt: at };
    const given = Object.entries(merged).filter(([, value]) => value !== undefined);
    return { outcome: "changed", record: machineRecord.parse(Object.fromEntries(given)), ...(detail && { detail }) };
  };
  switch (change.action) {
    case "machine_set": {
      const { models } = change;
      if (before !== undefined && JSON.stringify(before.models) === JSON.stringify(models)) {
        return { outcome: "unchanged", record: before };
      }
      const was = before === undefined ? {} : { was: { models: before.models ?? everyModel } };
      return changed({ models }, { models: models ?? everyModel, ...was });
    }
    case "machine_paired": {
      if (before?.publicKey !== undefined && before.revokedAt === undefined) {
        return refused(`is paired already: revoke it first (trunkline machines revoke ${name})`);
      }
      const { join, models, external } = change;
      const given = { ...(models && { models }), ...(external && { external }) };
      const detail = { join: join.id, expires_at: isoTime(join.expiresAt), ...given };
      return changed({ join: { ...join, by }, ...given }, detail);
    }
    case "machine_cordoned": {
      const { reason, drains } = change;
      if (before?.revokedAt !== undefined) return wasRevoked;
      const isSame = before?.cordon?.reason === reason && before.cordon.drains === drains;
      if (isSame) return { outcome: "unchanged", record: before };
      const was = before?.cordon && { was: { reason: before.cordon.reason } };
      return changed({ cordon: { reason, at, by, drains } }, { reason, ...was });
    }
    case "machine_labelled": {
      const labels = [...new Set(change.labels)].toSorted();
      const was = before?.labels ?? [];
      if (before !== undefined && JSON.stringify(was) === JSON.stringify(labels)) {
        return { outcome: "unchanged", record: before };
      }
      return changed({ labels: labels.length === 0 ? undefined : labels }, { labels, was: { labels: was } });
    }
    case "machine_external": {
      const external = change.external || undefined;
      if (before !== undefined && before.external === external) return { outcome: "unchanged", record: before };
      return changed({ external }, { external: change.external });
    }
    default:
      return before === undefined ? { outcome: "unknown" } : changeKnown(before, change, { at, changed });
  }
}

function changeKnown(
  before: MachineRecord,
  change: KnownRecordChange,
  { at, changed }: { readonly at: number; readonly changed: ChangedRecord },
): AppliedMachineChange {
  const { join, name } = before;
  const unchanged = { outcome: "unchanged", record: before } as const;
  switch (change.action) {
    case "machine_joined": {
      if (join === undefined || join.usedAt !== undefined) return refused("has no join line to use");
      const { publicKey, from } = change;
      const paired = { publicKey, pairedAt: at, pairedBy: join.by, revokedAt: undefined };
      const used = { ...join, usedAt: at, usedFrom: from };
      return changed({ ...paired, join: used }, { join: join.id, public_key: publicKey, from });
    }
    case "machine_join_reused": {
      if (join?.usedAt === undefined || join.usedAgainAt !== undefined) return unchanged;
      const { from } = change;
      const detail = { join: join.id, from, first_from: join.usedFrom };
      return changed({ join: { ...join, usedAgainAt: at, usedAgainFrom: from } }, detail);
    }
    case "machine_renamed":
      if (change.name === name) return unchanged;
      if (before.revokedAt !== undefined) return wasRevoked;
      if (before.publicKey === undefined) {
        return refused("was never paired: its agent has its name from TRUNKLINE_MACHINE");
      }
      return changed({ name: change.name }, { was: name });
    case "machine_revoked": {
      if (before.revokedAt !== undefined && (join === undefined || join.usedAt !== undefined)) return unchanged;
      // An unused join line goes with the key. A used one stays: its second use is still to be told.
      const kept = join?.usedAt === undefined ? undefined : join;
      const { publicKey, revokedAt = at } = before;
      return changed(
        { revokedAt, cordon: undefined, join: kept },
        publicKey === undefined ? undefined : { public_key: publicKey },
      );
    }
    case "machine_uncordoned":
      if (before.cordon === undefined) return unchanged;
      return changed({ cordon: undefined }, { was: { reason: before.cordon.reason } });
  }
}

function refused(reason: string): AppliedMachineChange {
  return { outcome: "refused", reason };
}

const wasRevoked = refused("was revoked: pair it anew (trunkline machines pair)");

/** Returns why the record must not be removed now. `reason` follows «The machine attic …» in a sentence. */
export function whyNotRemoved(record: MachineRecord): string | undefined {
  const { publicKey, revokedAt, name, external } = record;
  if (publicKey === undefined) {
    if (external === undefined) return undefined;
    return `is external, and without its record it would get every request: say first that it is not (trunkline machines external ${name} --off)`;
  }
  if (revokedAt === undefined) return `is paired: revoke it first (trunkline machines revoke ${name})`;
  return undefined;
}

export interface MachineMeans extends RecordSite {
  readonly machines: MachineStore;
}

export type MachineChanged = RecordChanged<MachineRecord>;

/**
 * Changes a machine's record for every process. The change applies to the record as it is at that moment. Throws the
 * fault of a change that is refused.
 */
export async function changeMachine(name: string, change: MachineChange, means: MachineMeans): Promise<MachineChanged> {
  const attempt = async () => {
    const attempted = await attemptMachineChange(await means.machines.find(name), { name, change }, means);
    return attempted.outcome === "conflict" ? "conflict" : attempted;
  };
  const attempted = await retryConflicts(attempt, contended);
  if (attempted.outcome === "refused") throw changeRefused(name, attempted.reason);
  if (attempted.outcome === "unknown") throw machineUnknown(name);
  return { outcome: attempted.outcome, record: attempted.record, replication: await means.keys.awaitReplica() };
}

/** Changes the record `before` of the machine `name`, unless somebody else has changed it meanwhile. */
export async function attemptMachineChange(
  before: MachineRecord | undefined,
  { name, change }: { readonly name: string; readonly change: MachineChange },
  { machines, clock, actor }: Omit<MachineMeans, "keys">,
): Promise<AppliedMachineChange | { readonly outcome: "conflict" }> {
  const at = clock.wall();
  const applied = applyMachineChange(before, change, { name, at, by: actor.by });
  if (applied.outcome !== "changed") return applied;
  if (before === undefined && (await machines.list()).length >= machineRecordsMax) {
    return refused(`needs a record, and there are ${machineRecordsMax} already (machineRecordsMax): remove one first`);
  }
  const { record, detail } = applied;
  const machine = record.name;
  const entry = { at, ...actor, action: change.action, machine, name: machine, ...(detail && { detail }) };
  const written = await write(machines, { record, change, name }, entry);
  if (written === "conflict") return { outcome: "conflict" };
  if (written === "written") return applied;
  return refused(
    change.action === "machine_renamed"
      ? `cannot be called ${change.name}: there is a record of that name (trunkline machines list)`
      : "cannot have a key that this site accepted before",
  );
}

function write(
  machines: MachineStore,
  { record, change, name }: { readonly record: MachineRecord; readonly change: MachineChange; readonly name: string },
  entry: AuditEntry,
): Promise<Written | "taken"> {
  if (change.action === "machine_joined") return machines.pair({ ...record, publicKey: change.publicKey }, entry);
  return record.name === name ? machines.write(record, entry) : machines.rename(name, record, entry);
}

/**
 * Removes the record of a machine that is not paired, and returns it. The machine may then offer every model again.
 * Throws the fault of a removal that is refused.
 */
export async function removeMachine(
  name: string,
  { machines, clock, actor }: Omit<MachineMeans, "keys">,
): Promise<MachineRecord> {
  const attempt = async () => {
    const record = await machines.find(name);
    if (record === undefined) throw machineUnknown(name);
    const at = clock.wall();
    const reason = whyNotRemoved(record);
    if (reason !== undefined) throw changeRefused(name, reason);
    const detail = { models: everyModel, was: { models: record.models ?? everyModel } };
    const entry = { at, ...actor, action: "machine_removed", machine: name, name, detail } as const;
    return (await machines.remove(record, entry)) === "written" ? record : "conflict";
  };
  return retryConflicts(attempt, contended);
}

function changeRefused(name: string, reason: string): Fault {
  return new Fault("machine_change_refused", { message: `The machine ${name} ${reason}.` });
}

export function machineUnknown(name: string): Fault {
  const message = `There is no record of a machine ${name}: \`trunkline machines list\` shows all.`;
  return new Fault("machine_not_found", { message, param: "machine" });
}

/** Returns the fault of a machine that cannot have its name, because of two agents with one name the older one stops. */
export function machineNameUsed(machine: string): Fault {
  return new Fault("machine_name_used", {
    message: `An agent that was not paired is there as ${machine}: stop that agent first, or choose another name.`,
    param: "machine",
  });
}

export const contended = "The machine's record was changed at the same time. Try again.";
