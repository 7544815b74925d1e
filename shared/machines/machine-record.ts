import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import type { Actor, AuditEntry } from "../keys/audit-entry.ts";
import { allows, scope, scopesPerKeyMax } from "../keys/key-record.ts";
import { type KeyStore, type Replication, type Written, readStored, unfoundedStore } from "../keys/key-store.ts";
import type { Clock } from "../process/clock.ts";
import { machineName } from "../protocol/identifiers.ts";
import type { SQLTagStore } from "node:sqlite";
import { isFounded, note } from "../keys/sqlite-key-store.ts";
import type { StateDatabase } from "../keys/state-database.ts";

/** Maximum number of machine records of a site. Every gateway holds all of them. */
const machineRecordsMax = 10_000;
const patternsPerMachineMax = scopesPerKeyMax;

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

interface MachineMeans {
  readonly machines: MachineStore;
  /** Narrower patterns take a right away. The change therefore waits for a replica, as the revocation of a key does. */
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

interface MachineChanged {
  readonly outcome: "changed" | "unchanged";
  readonly record: MachineRecord;
  readonly replication: Replication;
}

const everyModel = ["*"];

/**
 * Bounds the retries after a conflict. Concurrent changes of one record are rare, and each attempt lets one of them
 * succeed.
 */
const attemptsMax = 100;

/**
 * Sets the models that a machine may offer, for every process; undefined permits all. Creates the record if there is
 * none.
 */
export async function setMachineModels(
  name: string,
  models: readonly string[] | undefined,
  means: MachineMeans,
): Promise<MachineChanged> {
  const changed = await writeModels(name, models, means);
  return { ...changed, replication: await means.keys.awaitReplica() };
}

async function writeModels(
  name: string,
  models: readonly string[] | undefined,
  { machines, clock, actor }: MachineMeans,
): Promise<Omit<MachineChanged, "replication">> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const before = await machines.find(name);
    if (before !== undefined && JSON.stringify(before.models) === JSON.stringify(models)) {
      return { outcome: "unchanged", record: before };
    }
    if (before === undefined && (await machines.list()).length >= machineRecordsMax) throw tooMany();
    const at = clock.wall();
    const { models: _, ...kept } = before ?? { name, version: 0, createdAt: at };
    const version = (before?.version ?? 0) + 1;
    const record = {
      ...kept,
      name,
      version,
      createdAt: before?.createdAt ?? at,
      changedAt: at,
      ...(models && { models }),
    };
    const was = before === undefined ? {} : { was: { models: before.models ?? everyModel } };
    const detail = { models: models ?? everyModel, ...was };
    const written = await machines.write(record, { at, ...actor, action: "machine_set", machine: name, name, detail });
    if (written === "written") return { outcome: "changed", record };
  }
  throw contended();
}

/**
 * Removes the record of a machine, which may then offer every model again. Returns undefined when there is no record.
 */
export async function removeMachine(
  name: string,
  { machines, clock, actor }: Omit<MachineMeans, "keys">,
): Promise<MachineRecord | undefined> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const record = await machines.find(name);
    if (record === undefined) return undefined;
    const detail = { models: everyModel, was: { models: record.models ?? everyModel } };
    const entry = { at: clock.wall(), ...actor, action: "machine_removed", machine: name, name, detail } as const;
    if ((await machines.remove(record, entry)) === "written") return record;
  }
  throw contended();
}

function contended(): Fault {
  return new Fault("backend_unavailable", { message: "The machine's record was changed at the same time. Try again." });
}

function tooMany(): Fault {
  return new Fault("key_change_refused", {
    message: `There are ${machineRecordsMax} records of machines already (machineRecordsMax). Remove one first.`,
  });
}

/** Records of machines in the embedded database, beside the keys. */
export class SqliteMachineStore implements MachineStore {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  async list(): Promise<readonly MachineRecord[]> {
    const rows = this.#database.read("list machines", (sql) => sql.all`SELECT record FROM machines ORDER BY name`);
    return rows.map(recordIn);
  }

  async find(name: string): Promise<MachineRecord | undefined> {
    return this.#database.read("find a machine", (sql) => recordOf(sql, name));
  }

  async write(record: MachineRecord, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    return this.#change({ name, replaces: version - 1, entry }, (sql) => {
      const text = JSON.stringify(record);
      sql.run`INSERT INTO machines (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`;
    });
  }

  async remove({ name, version }: MachineRecord, entry: AuditEntry): Promise<Written> {
    return this.#change({ name, replaces: version, entry }, (sql) => {
      sql.run`DELETE FROM machines WHERE name = ${name}`;
    });
  }

  #change(
    { name, replaces, entry }: { readonly name: string; readonly replaces: number; readonly entry: AuditEntry },
    write: (sql: SQLTagStore) => void,
  ): Written {
    return this.#database.change("change a machine", (sql) => {
      if (!isFounded(sql)) throw unfoundedStore();
      if ((recordOf(sql, name)?.version ?? 0) !== replaces) return "conflict";
      write(sql);
      note(sql, entry);
      return "written";
    });
  }
}

function recordOf(sql: SQLTagStore, name: string): MachineRecord | undefined {
  const row = sql.get`SELECT record FROM machines WHERE name = ${name}`;
  return row === undefined ? undefined : recordIn(row);
}

function recordIn(row: Record<string, unknown>): MachineRecord {
  return readStored(machineRecord, () => JSON.parse(String(row["record"])));
}
