import type { SQLTagStore } from "node:sqlite";
import type { AuditEntry } from "../keys/audit-entry.ts";
import { readStored, unfoundedStore, type Written } from "../keys/key-store.ts";
import { isFounded, note } from "../keys/sqlite-key-store.ts";
import type { StateDatabase } from "../keys/state-database.ts";
import { machineRecord, type MachineRecord, type MachineStore } from "./machine-record.ts";

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
