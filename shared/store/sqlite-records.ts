import type { z } from "zod";
import type { AuditEntry } from "../records/audit-entry.ts";
import {
  readEach,
  readRecord,
  type RecordStore,
  unfoundedStore,
  type UnreadRecord,
  type Written,
} from "../records/key-store.ts";
import type { SqlTags, StateDatabase } from "./state-database.ts";
import { isFounded, note } from "./sqlite-key-store.ts";
import { type NamedStores, openNamed } from "../records/named-records.ts";

/** The statements of a table of records. The names of tables cannot be bound. */
export interface Table<Kept> {
  readonly noun: string;
  readonly schema: z.ZodType<Kept>;
  readonly list: (sql: SqlTags) => readonly Record<string, unknown>[];
  readonly find: (sql: SqlTags, name: string) => Record<string, unknown> | undefined;
  readonly put: (sql: SqlTags, record: Kept, text: string) => unknown;
  readonly drop: (sql: SqlTags, name: string) => unknown;
}

/** Records by their names in the embedded database, beside the keys. */
export class SqliteRecords<
  Kept extends { readonly name: string; readonly version: number },
> implements RecordStore<Kept> {
  protected readonly database: StateDatabase;
  readonly #table: Table<Kept>;

  constructor(database: StateDatabase, table: Table<Kept>) {
    this.database = database;
    this.#table = table;
  }

  async list(unread?: UnreadRecord[]): Promise<readonly Kept[]> {
    const { noun, list, schema } = this.#table;
    const rows = this.database.read(`list ${noun}s`, list);
    return readEach(schema, rows, unread);
  }

  async find(name: string): Promise<Kept | undefined> {
    return this.database.read(`find a ${this.#table.noun}`, (sql) => this.#find(sql, name));
  }

  async write(record: Kept, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    return this.change({ name, replaces: version - 1, entry }, (sql) => this.put(sql, record));
  }

  async remove({ name, version }: Kept, entry: AuditEntry): Promise<Written> {
    return this.change({ name, replaces: version, entry }, (sql) => {
      this.#table.drop(sql, name);
      return "written";
    });
  }

  /** Changes the record called `name`, which is at the version `replaces`. `apply` writes nothing if it returns `taken`. */
  protected change<Made extends Written | "taken">(
    { name, replaces, entry }: { readonly name: string; readonly replaces: number; readonly entry: AuditEntry },
    apply: (sql: SqlTags) => Made,
  ): Made | "conflict" {
    return this.database.change(`change a ${this.#table.noun}`, (sql) => {
      if (!isFounded(sql)) throw unfoundedStore();
      if ((this.#find(sql, name)?.version ?? 0) !== replaces) return "conflict";
      const made = apply(sql);
      if (made === "written") note(sql, entry);
      return made;
    });
  }

  protected put(sql: SqlTags, record: Kept): "written" {
    this.#table.put(sql, record, JSON.stringify(record));
    return "written";
  }

  #find(sql: SqlTags, name: string): Kept | undefined {
    const row = this.#table.find(sql, name);
    return row && readRecord(this.#table.schema, row["record"]);
  }
}

/** Opens the tables that have names and records, and nothing else. */
export function sqliteNamed(database: StateDatabase): NamedStores {
  const statement = (...parts: readonly string[]) => Object.assign([...parts], { raw: parts });
  return openNamed(({ at, noun, schema }) => {
    const list = statement(`SELECT name, record FROM ${at} ORDER BY name`);
    const find = statement(`SELECT record FROM ${at} WHERE name = `, "");
    const put = statement(`INSERT OR REPLACE INTO ${at} (name, record) VALUES (`, ", ", ")");
    const drop = statement(`DELETE FROM ${at} WHERE name = `, "");
    return new SqliteRecords(database, {
      noun,
      schema,
      list: (sql) => sql.all(list),
      find: (sql, name) => sql.get(find, name),
      put: (sql, { name }, text) => sql.run(put, name, text),
      drop: (sql, name) => sql.run(drop, name),
    });
  });
}
