import type { AuditEntry } from "../records/audit-entry.ts";
import { readEach, readRecord, unfoundedStore, type UnreadRecord, type Written } from "../records/key-store.ts";
import { isFounded, note } from "./sqlite-key-store.ts";
import type { SqlTags, StateDatabase } from "./state-database.ts";
import { newToken } from "../protocol/identifiers.ts";
import {
  machineRecord,
  readSite,
  type MachineRecord,
  type MachineStore,
  machineOffer,
  type SeenMachine,
  type Site,
} from "../records/machine-record.ts";

/** A change of the record called `name`, which is at the version `replaces`. */
interface Change<Made extends Written | "taken"> {
  readonly name: string;
  readonly replaces: number;
  readonly entry: AuditEntry;
  /** Writes nothing if it returns `taken`. */
  readonly apply: (sql: SqlTags) => Made;
}

/** Records of machines in the embedded database, beside the keys. */
export class SqliteMachineStore implements MachineStore {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  async site(): Promise<Site> {
    const read = (sql: SqlTags) => sql.get`SELECT id, noted FROM site`;
    const row =
      this.#database.read("tell its site", read) ??
      this.#database.change("name its site", (sql) => {
        sql.run`INSERT OR IGNORE INTO site (only, id, noted) VALUES (1, ${newToken()}, '{}')`;
        return read(sql);
      });
    return readSite(row?.["id"], row?.["noted"]);
  }

  async noteSite(reached: Partial<Omit<Site, "id">>): Promise<void> {
    await this.site();
    this.#database.change("note its site", (sql) => sql.run`UPDATE site SET noted = ${JSON.stringify(reached)}`);
  }

  async list(unread?: UnreadRecord[]): Promise<readonly MachineRecord[]> {
    const rows = this.#database.read(
      "list machines",
      (sql) => sql.all`SELECT name, record FROM machines ORDER BY name`,
    );
    return readEach(machineRecord, rows, unread);
  }

  async find(name: string): Promise<MachineRecord | undefined> {
    return this.#database.read("find a machine", (sql) => recordOf(sql, name));
  }

  async findByKey(publicKey: string): Promise<MachineRecord | undefined> {
    const row = this.#database.read(
      "find a machine by its key",
      (sql) => sql.get`SELECT record FROM machines WHERE json_extract(record, '$.publicKey') = ${publicKey}`,
    );
    return row && readRecord(machineRecord, row["record"]);
  }

  async findByJoin(id: string): Promise<MachineRecord | undefined> {
    const row = this.#database.read(
      "find a machine by its join line",
      (sql) => sql.get`SELECT record FROM machines WHERE json_extract(record, '$.join.id') = ${id}`,
    );
    return row && readRecord(machineRecord, row["record"]);
  }

  async write(record: MachineRecord, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    return this.#change({ name, replaces: version - 1, entry, apply: (sql) => keep(sql, record) });
  }

  async pair(record: MachineRecord & { readonly publicKey: string }, entry: AuditEntry): Promise<Written | "taken"> {
    const { name, version, publicKey } = record;
    const apply = (sql: SqlTags): Written | "taken" => {
      const isKnown = sql.get`SELECT 1 FROM machine_keys WHERE public_key = ${publicKey}` !== undefined;
      return isKnown ? "taken" : keep(sql, record);
    };
    return this.#change({ name, replaces: version - 1, entry, apply });
  }

  async rename(from: string, record: MachineRecord, entry: AuditEntry): Promise<Written | "taken"> {
    const apply = (sql: SqlTags): Written | "taken" => {
      if (recordOf(sql, record.name) !== undefined) return "taken";
      sql.run`DELETE FROM machines WHERE name = ${from}`;
      return keep(sql, record);
    };
    return this.#change({ name: from, replaces: record.version - 1, entry, apply });
  }

  async remove({ name, version }: MachineRecord, entry: AuditEntry): Promise<Written> {
    const apply = (sql: SqlTags): Written => {
      sql.run`DELETE FROM machines WHERE name = ${name}`;
      return "written";
    };
    return this.#change({ name, replaces: version, entry, apply });
  }

  async noteSeen(seen: ReadonlyMap<string, SeenMachine>): Promise<void> {
    this.#database.change("note when machines were seen", (sql) => {
      for (const [publicKey, { atMs, ...offer }] of seen) {
        sql.run`UPDATE machine_keys SET seen_at = ${Math.round(atMs)} WHERE public_key = ${publicKey}`;
        sql.run`INSERT OR REPLACE INTO machine_offers VALUES (${publicKey}, ${JSON.stringify(offer)})`;
      }
    });
  }

  async lastSeen(): Promise<ReadonlyMap<string, SeenMachine>> {
    const rows = this.#database.read(
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

  #change<Made extends Written | "taken">({ name, replaces, entry, apply }: Change<Made>): Made | "conflict" {
    return this.#database.change("change a machine", (sql) => {
      if (!isFounded(sql)) throw unfoundedStore();
      if ((recordOf(sql, name)?.version ?? 0) !== replaces) return "conflict";
      const written = apply(sql);
      if (written === "written") note(sql, entry);
      return written;
    });
  }
}

function recordOf(sql: SqlTags, name: string): MachineRecord | undefined {
  const row = sql.get`SELECT record FROM machines WHERE name = ${name}`;
  return row && readRecord(machineRecord, row["record"]);
}

/** Writes a record. The table of keys keeps every public key that a record ever had. */
function keep(sql: SqlTags, record: MachineRecord): "written" {
  const { name, publicKey } = record;
  const text = JSON.stringify(record);
  sql.run`INSERT INTO machines (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`;
  if (publicKey !== undefined) sql.run`INSERT OR IGNORE INTO machine_keys (public_key) VALUES (${publicKey})`;
  return "written";
}
