import type { AuditEntry } from "../records/audit-entry.ts";
import { unfoundedStore, type Written } from "../records/key-store.ts";
import type { SqlTags, StateDatabase } from "./state-database.ts";
import { isFounded, note } from "./sqlite-key-store.ts";
import { readRoute, type RouteRecord, type RouteStore } from "../records/route-record.ts";

/** Routes in the embedded database, beside the keys. */
export class SqliteRouteStore implements RouteStore {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  async list(): Promise<readonly RouteRecord[]> {
    const rows = this.#database.read("list routes", (sql) => sql.all`SELECT record FROM routes ORDER BY name`);
    return rows.map(({ record }) => readRoute(record));
  }

  async find(name: string): Promise<RouteRecord | undefined> {
    return this.#database.read("find a route", (sql) => recordOf(sql, name));
  }

  async write(record: RouteRecord, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    const text = JSON.stringify(record);
    return this.#change({ name, replaces: version - 1, entry }, (sql) => {
      sql.run`INSERT INTO routes (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`;
    });
  }

  async remove({ name, version }: RouteRecord, entry: AuditEntry): Promise<Written> {
    return this.#change({ name, replaces: version, entry }, (sql) => {
      sql.run`DELETE FROM routes WHERE name = ${name}`;
    });
  }

  #change(
    { name, replaces, entry }: { readonly name: string; readonly replaces: number; readonly entry: AuditEntry },
    apply: (sql: SqlTags) => void,
  ): Written {
    return this.#database.change("change a route", (sql) => {
      if (!isFounded(sql)) throw unfoundedStore();
      if ((recordOf(sql, name)?.version ?? 0) !== replaces) return "conflict";
      apply(sql);
      note(sql, entry);
      return "written";
    });
  }
}

function recordOf(sql: SqlTags, name: string): RouteRecord | undefined {
  const row = sql.get`SELECT record FROM routes WHERE name = ${name}`;
  return row && readRoute(row["record"]);
}
