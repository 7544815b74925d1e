import type { AuditEntry } from "../records/audit-entry.ts";
import { readRecord, type Written } from "../records/key-store.ts";
import { SqliteRecords, type Table } from "./sqlite-records.ts";
import type { SqlTags, StateDatabase } from "./state-database.ts";
import { newToken } from "../protocol/identifiers.ts";
import {
  machineRecord,
  readSite,
  type MachineRecord,
  type MachineStore,
  machineOffer,
  type SeenMachine,
  type SiteRecord,
} from "../records/machine-record.ts";

const table: Table<MachineRecord> = {
  noun: "machine",
  schema: machineRecord,
  list: (sql) => sql.all`SELECT name, record FROM machines ORDER BY name`,
  find: (sql, name) => sql.get`SELECT record FROM machines WHERE name = ${name}`,
  /** The table of keys keeps every public key that a record ever had. */
  put(sql, { name, publicKey }, text) {
    sql.run`INSERT INTO machines (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`;
    if (publicKey !== undefined) sql.run`INSERT OR IGNORE INTO machine_keys (public_key) VALUES (${publicKey})`;
  },
  drop: (sql, name) => sql.run`DELETE FROM machines WHERE name = ${name}`,
};

/** Records of machines in the embedded database, beside the keys. */
export class SqliteMachineStore extends SqliteRecords<MachineRecord> implements MachineStore {
  constructor(database: StateDatabase) {
    super(database, table);
  }

  async site(): Promise<SiteRecord> {
    const read = (sql: SqlTags) => sql.get`SELECT id, noted FROM site`;
    const row =
      this.database.read("tell its site", read) ??
      this.database.change("name its site", (sql) => {
        sql.run`INSERT OR IGNORE INTO site (only, id, noted) VALUES (1, ${newToken()}, '{}')`;
        return read(sql);
      });
    return readSite(row?.["id"], row?.["noted"]);
  }

  async noteSite(reached: Partial<Omit<SiteRecord, "id">>): Promise<void> {
    await this.site();
    this.database.change("note its site", (sql) => sql.run`UPDATE site SET noted = ${JSON.stringify(reached)}`);
  }

  async findByKey(publicKey: string): Promise<MachineRecord | undefined> {
    return this.#findBy(
      (sql) => sql.get`SELECT record FROM machines WHERE json_extract(record, '$.publicKey') = ${publicKey}`,
    );
  }

  async findByJoin(id: string): Promise<MachineRecord | undefined> {
    return this.#findBy((sql) => sql.get`SELECT record FROM machines WHERE json_extract(record, '$.join.id') = ${id}`);
  }

  #findBy(query: (sql: SqlTags) => Record<string, unknown> | undefined): MachineRecord | undefined {
    const row = this.database.read("find a machine", query);
    return row && readRecord(machineRecord, row["record"]);
  }

  async pair(record: MachineRecord & { readonly publicKey: string }, entry: AuditEntry): Promise<Written | "taken"> {
    const { name, version, publicKey } = record;
    return this.change<Written | "taken">({ name, replaces: version - 1, entry }, (sql) => {
      const isKnown = sql.get`SELECT 1 FROM machine_keys WHERE public_key = ${publicKey}` !== undefined;
      return isKnown ? "taken" : this.put(sql, record);
    });
  }

  async rename(from: string, record: MachineRecord, entry: AuditEntry): Promise<Written | "taken"> {
    return this.change<Written | "taken">({ name: from, replaces: record.version - 1, entry }, (sql) => {
      if (table.find(sql, record.name) !== undefined) return "taken";
      table.drop(sql, from);
      return this.put(sql, record);
    });
  }

  async noteSeen(seen: ReadonlyMap<string, SeenMachine>): Promise<void> {
    this.database.change("note when machines were seen", (sql) => {
      for (const [publicKey, { atMs, ...offer }] of seen) {
        sql.run`UPDATE machine_keys SET seen_at = ${Math.round(atMs)} WHERE public_key = ${publicKey}`;
        sql.run`INSERT OR REPLACE INTO machine_offers VALUES (${publicKey}, ${JSON.stringify(offer)})`;
      }
    });
  }

  async lastSeen(): Promise<ReadonlyMap<string, SeenMachine>> {
    const rows = this.database.read(
      "tell when machines were seen",
      (sql) => sql.all`
        SELECT public_key, seen_at, offer FROM machine_keys LEFT JOIN machine_offers USING (public_key)
        WHERE seen_at IS NOT NULL`,
    );
    return new Map(
      rows.map((row) => {
        const offer = machineOffer.parse(JSON.parse(String(row["offer"] ?? "{}")));
        return [String(row["public_key"]), { atMs: Number(row["seen_at"]), ...offer }];
      }),
    );
  }
}
