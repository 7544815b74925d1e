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
import { keepRecord, type KeepRecord } from "../records/keep-record.ts";
import { priceRecord, type PriceRecord } from "../records/price-record.ts";
import { personRecord, type PersonRecord } from "../records/person-record.ts";
import { teamRecord, type TeamRecord } from "../records/team-record.ts";
import { routeRecord, type RouteRecord } from "../records/route-record.ts";

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

export function sqliteRoutes(database: StateDatabase): RecordStore<RouteRecord> {
  return new SqliteRecords(database, {
    noun: "route",
    schema: routeRecord,
    list: (sql) => sql.all`SELECT name, record FROM routes ORDER BY name`,
    find: (sql, name) => sql.get`SELECT record FROM routes WHERE name = ${name}`,
    put: (sql, { name }, text) =>
      sql.run`INSERT INTO routes (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`,
    drop: (sql, name) => sql.run`DELETE FROM routes WHERE name = ${name}`,
  });
}

export function sqliteKeeps(database: StateDatabase): RecordStore<KeepRecord> {
  return new SqliteRecords(database, {
    noun: "keep",
    schema: keepRecord,
    list: (sql) => sql.all`SELECT name, record FROM keeps ORDER BY name`,
    find: (sql, name) => sql.get`SELECT record FROM keeps WHERE name = ${name}`,
    put: (sql, { name }, text) =>
      sql.run`INSERT INTO keeps (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`,
    drop: (sql, name) => sql.run`DELETE FROM keeps WHERE name = ${name}`,
  });
}

export function sqlitePrices(database: StateDatabase): RecordStore<PriceRecord> {
  return new SqliteRecords(database, {
    noun: "price",
    schema: priceRecord,
    list: (sql) => sql.all`SELECT name, record FROM prices ORDER BY name`,
    find: (sql, name) => sql.get`SELECT record FROM prices WHERE name = ${name}`,
    put: (sql, { name }, text) =>
      sql.run`INSERT INTO prices (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`,
    drop: (sql, name) => sql.run`DELETE FROM prices WHERE name = ${name}`,
  });
}

export function sqliteTeams(database: StateDatabase): RecordStore<TeamRecord> {
  return new SqliteRecords(database, {
    noun: "team",
    schema: teamRecord,
    list: (sql) => sql.all`SELECT name, record FROM teams ORDER BY name`,
    find: (sql, name) => sql.get`SELECT record FROM teams WHERE name = ${name}`,
    put: (sql, { name }, text) =>
      sql.run`INSERT INTO teams (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`,
    drop: (sql, name) => sql.run`DELETE FROM teams WHERE name = ${name}`,
  });
}

export function sqlitePeople(database: StateDatabase): RecordStore<PersonRecord> {
  return new SqliteRecords(database, {
    noun: "person",
    schema: personRecord,
    list: (sql) => sql.all`SELECT name, record FROM people ORDER BY name`,
    find: (sql, name) => sql.get`SELECT record FROM people WHERE name = ${name}`,
    put: (sql, { name }, text) =>
      sql.run`INSERT INTO people (name, record) VALUES (${name}, ${text}) ON CONFLICT DO UPDATE SET record = ${text}`,
    drop: (sql, name) => sql.run`DELETE FROM people WHERE name = ${name}`,
  });
}
