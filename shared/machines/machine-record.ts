import { z } from "zod";
import type { AuditEntry } from "../keys/audit-entry.ts";
import type { Written } from "../keys/key-store.ts";
import { allows, scope, scopesPerKeyMax } from "../keys/scope.ts";
import { machineName } from "../protocol/identifiers.ts";

/** Maximum number of machine records of a site. Every gateway holds all of them. */
export const machineRecordsMax = 10_000;
export const patternsPerMachineMax = scopesPerKeyMax;

/** The models that a machine may offer, in the syntax of a key's scopes. */
export const modelPatterns = z
  .array(scope)
  .min(1, "must name at least one pattern; * permits every model")
  .max(patternsPerMachineMax, `must be at most ${patternsPerMachineMax} patterns`)
  .readonly();

const wallMs = z.int().nonnegative();

/**
 * The site's record of a machine, which may exist before the machine's first message. Times are milliseconds since
 * 1970. Unknown fields are kept, so that an older command line changes the patterns and removes nothing else.
 */
export const machineRecord = z.looseObject({
  name: machineName,
  /** 1 for a new record, and one more with every change, so that a writer detects a concurrent change. */
  version: z.int().positive(),
  /** Undefined permits every model. */
  models: modelPatterns.optional(),
  createdAt: wallMs,
  changedAt: wallMs,
});
export type MachineRecord = Readonly<z.infer<typeof machineRecord>>;

export function permits(record: MachineRecord | undefined, modelId: string): boolean {
  return record?.models === undefined || allows(record.models, modelId);
}

/**
 * Stores the records of machines beside the keys, with one audit trail for both. It fails as a `KeyStore` does. A store
 * that no key has founded accepts no record.
 */
export interface MachineStore {
  /** Returns all records, sorted by name. */
  list(): Promise<readonly MachineRecord[]>;
  find(name: string): Promise<MachineRecord | undefined>;
  /** Stores a record in place of the one whose version is one lower. Version 1 replaces no record. */
  write(record: MachineRecord, entry: AuditEntry): Promise<Written>;
  /** Removes the record if its version has not changed. */
  remove(record: MachineRecord, entry: AuditEntry): Promise<Written>;
}

/** A machine's record as the command line and the admin API show it. */
export const shownMachineRecord = z.strictObject({
  machine: machineName,
  models: z.array(z.string()).readonly().nullable().describe("Patterns of the models it may offer; null for all."),
  created_at: z.iso.datetime(),
  changed_at: z.iso.datetime(),
});
export type ShownMachineRecord = z.infer<typeof shownMachineRecord>;

export function showMachineRecord({ name, models, createdAt, changedAt }: MachineRecord): ShownMachineRecord {
  return {
    machine: name,
    models: models ?? null,
    created_at: new Date(createdAt).toISOString(),
    changed_at: new Date(changedAt).toISOString(),
  };
}
