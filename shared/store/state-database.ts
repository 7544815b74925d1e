import { reasonOf } from "#shared/fault/fault.ts";
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { Fault } from "../fault/fault.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { makeStateFolder } from "../process/state-folder.ts";
import { newPepperText, type Pepper, pepperBytesMin, pepperText } from "../keys/pepper.ts";

/** The file of the embedded store in its state folder. */
export const stateFileName = "trunkline.db";

/** Default wait of a process with other work for another process's write. Writes are few and take milliseconds. */
const patienceMsDefault = 1_000;

/**
 * One step for each version of the file. A released step is never changed. Opening a file applies the missing steps. A
 * file with a higher version is from a newer Trunkline and is left alone.
 */
export const schemaSteps = [
  `CREATE TABLE keys (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
   CREATE TABLE pepper (only INTEGER PRIMARY KEY CHECK (only = 1), fingerprint TEXT NOT NULL) STRICT;
   CREATE TABLE known_models (id TEXT PRIMARY KEY, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
   CREATE INDEX known_models_by_age ON known_models (seen_at);`,
  `CREATE TABLE audit (sequence INTEGER PRIMARY KEY AUTOINCREMENT, key_id TEXT NOT NULL, entry TEXT NOT NULL) STRICT;
   CREATE INDEX audit_by_key ON audit (key_id);
   CREATE TABLE usage (
     day TEXT NOT NULL, key_id TEXT NOT NULL, model TEXT NOT NULL,
     requests INTEGER NOT NULL, failed INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
     completion_tokens INTEGER NOT NULL, answered INTEGER NOT NULL, first_token_ms INTEGER NOT NULL,
     duration_ms INTEGER NOT NULL, PRIMARY KEY (day, key_id, model)) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE machines (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  `CREATE INDEX machines_by_key ON machines (json_extract(record, '$.publicKey'));
   CREATE INDEX machines_by_join ON machines (json_extract(record, '$.join.id'));
   CREATE TABLE machine_keys (public_key TEXT PRIMARY KEY, seen_at INTEGER) STRICT, WITHOUT ROWID;
   CREATE TABLE site (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL, noted TEXT NOT NULL) STRICT;`,
  `CREATE TABLE routes (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE requests (
     sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at INTEGER NOT NULL, record TEXT NOT NULL) STRICT;
   CREATE INDEX requests_by_id ON requests (id);`,
  `CREATE TABLE sessions (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE keeps (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE running (id INTEGER PRIMARY KEY, usage TEXT NOT NULL) STRICT;`,
  `ALTER TABLE running ADD COLUMN made TEXT;
   ALTER TABLE running ADD COLUMN request TEXT;`,
  `CREATE TABLE responses (
     key_id TEXT NOT NULL, id TEXT NOT NULL, stored_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
     sealed BLOB NOT NULL, PRIMARY KEY (key_id, id)) STRICT;
   CREATE INDEX responses_by_age ON responses (key_id, stored_at);
   CREATE INDEX responses_by_end ON responses (expires_at);`,
  `CREATE TABLE usage_of_keys (
     day TEXT NOT NULL, key_id TEXT NOT NULL, team TEXT NOT NULL, person TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL,
     requests INTEGER NOT NULL, failed INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
     completion_tokens INTEGER NOT NULL, answered INTEGER NOT NULL, first_token_ms INTEGER NOT NULL,
     duration_ms INTEGER NOT NULL, cost INTEGER NOT NULL,
     PRIMARY KEY (day, key_id, team, person, kind, model)) STRICT, WITHOUT ROWID;
   INSERT INTO usage_of_keys SELECT day, key_id, '', '', '', model, requests, failed, prompt_tokens, completion_tokens,
     answered, first_token_ms, duration_ms, 0 FROM usage;
   DROP TABLE usage;
   ALTER TABLE usage_of_keys RENAME TO usage;
   CREATE TABLE usage_parts (
     part TEXT NOT NULL, day TEXT NOT NULL, name TEXT NOT NULL, requests INTEGER NOT NULL, failed INTEGER NOT NULL,
     prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
     PRIMARY KEY (part, day, name)) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE spending (
     book TEXT NOT NULL, unit TEXT NOT NULL, period TEXT NOT NULL, amount INTEGER NOT NULL,
     PRIMARY KEY (book, unit, period)) STRICT, WITHOUT ROWID;
   ALTER TABLE running ADD COLUMN spent TEXT;`,
];

/**
 * The sums of stored responses. The file keeps its version: triggers are part of it, so that an older version counts as well and may
 * open the file again. `OR IGNORE` of a statement holds in its triggers, so that no upsert stands here.
 */
const responseSums = `
  CREATE TABLE response_sums (
    key_id TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO response_sums SELECT key_id, count(*), sum(length(sealed)) FROM responses GROUP BY key_id;
  CREATE TRIGGER response_stored AFTER INSERT ON responses BEGIN
    INSERT OR IGNORE INTO response_sums VALUES (new.key_id, 0, 0);
    UPDATE response_sums SET entries = entries + 1, bytes = bytes + length(new.sealed) WHERE key_id = new.key_id;
  END;
  CREATE TRIGGER response_dropped AFTER DELETE ON responses BEGIN
    UPDATE response_sums SET entries = entries - 1, bytes = bytes - length(old.sealed) WHERE key_id = old.key_id;
    DELETE FROM response_sums WHERE key_id = old.key_id AND entries = 0;
  END;`;

/** The offers of machines when they were heard last. They are noted anew every 10 s, so that no backup has them. */
const machineOffers = `
  CREATE TABLE IF NOT EXISTS machine_offers (
    public_key TEXT PRIMARY KEY, offer TEXT NOT NULL) STRICT, WITHOUT ROWID;`;

/** The list of sign-ins. The file keeps its version, as it does for `responseSums`. */
const signIns = `CREATE TABLE IF NOT EXISTS sign_ins (
  sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, entry TEXT NOT NULL) STRICT`;

/** The time of the last backup. The file keeps its version, as it does for `responseSums`. */
const lastBackup = `CREATE TABLE IF NOT EXISTS last_backup (
  only INTEGER PRIMARY KEY CHECK (only = 1), at INTEGER NOT NULL) STRICT`;

/** The alarms of the site. The file keeps its version, as it does for `responseSums`, and no backup has them. */
const alarms = `CREATE TABLE IF NOT EXISTS alarms (
  only INTEGER PRIMARY KEY CHECK (only = 1), state TEXT NOT NULL) STRICT`;

/** The sums of ended requests by minute and hour. The file keeps its version, as it does for `responseSums`. */
const history = `CREATE TABLE IF NOT EXISTS history (slot INTEGER PRIMARY KEY, sums BLOB NOT NULL) STRICT`;

/** The end users of keys. Their names leave the store by no backup. The file keeps its version, as it does for `responseSums`. */
const endUsers = `
  CREATE TABLE IF NOT EXISTS end_users (
    key_id TEXT NOT NULL, digest TEXT NOT NULL, used_at INTEGER NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (key_id, digest)) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS end_users_by_age ON end_users (used_at);
  CREATE INDEX IF NOT EXISTS end_users_of_key_by_age ON end_users (key_id, used_at);`;

/** The prices of models. The file keeps its version, as it does for `responseSums`. */
const prices = `CREATE TABLE IF NOT EXISTS prices (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID`;

/** Teams and people. The file keeps its version, as it does for `responseSums`. */
const teamsAndPeople = `
  CREATE TABLE IF NOT EXISTS teams (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS people (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;`;

/** The targets of alerts. The file keeps its version, as it does for `responseSums`. */
const alerts = `CREATE TABLE IF NOT EXISTS alerts (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID`;

const named = ["machines", "machine_keys", "routes", "keeps", "prices", "teams", "people", "alerts"];
const lists = ["keys", ...named, "usage", "usage_parts", "spending", "audit", "sign_ins", "known_models"];
const tables = [...lists, "pepper", "site"];

/**
 * The embedded store: one SQLite file in the state folder, accessible only to its owner. Several processes may have it
 * open at once, so that the CLI works beside a running gateway. Failures are Faults `backend_unavailable`.
 */
export class StateDatabase {
  readonly #database: DatabaseSync;
  readonly #sql: SqlTags;
  readonly #file: string;
  readonly #inode: bigint | undefined;

  constructor(database: DatabaseSync, file: string) {
    this.#database = database;
    this.#sql = new SqlTags(database);
    this.#file = file;
    this.#inode = inodeOf(file);
  }

  /**
   * Runs a query. `purpose` names the attempted operation in the log. Each statement is prepared once, and its values
   * are bound.
   */
  read<Answer>(purpose: string, query: (sql: SqlTags) => Answer): Answer {
    try {
      this.#assertFile();
      return query(this.#sql);
    } catch (error) {
      throw databaseIsAway(purpose, error);
    }
  }

  /**
   * Runs statements as `read` does, in one transaction. All of them apply or none, and no other process writes in
   * between.
   */
  change<Answer>(purpose: string, statements: (sql: SqlTags) => Answer): Answer {
    try {
      this.#assertFile();
      return inTransaction(this.#database, () => statements(this.#sql));
    } catch (error) {
      if (error instanceof Fault) throw error;
      throw databaseIsAway(purpose, error);
    }
  }

  /** Copies all tables, as they are at this moment, into a new file. */
  copyTo(file: string): void {
    this.read("copy itself", () => this.#database.prepare("VACUUM INTO ?").run(file));
  }

  /** Removes the bytes of deleted rows from the file. */
  compact(): void {
    this.read("compact its file", () => this.#database.exec("VACUUM"));
  }

  /** Replaces all rows by those of another file, in one step. The numbers of the trail go on, so that followers notice. */
  replaceBy(file: string): void {
    this.#database.prepare("ATTACH ? AS other").run(file);
    this.change("restore itself", (sql) => {
      sql.run`DELETE FROM main.responses`;
      sql.run`DELETE FROM main.end_users`;
      for (const table of tables) {
        const columns = table === "audit" ? "key_id, entry" : "*";
        const into = table === "audit" ? "audit (key_id, entry)" : table;
        this.#database.exec(
          `DELETE FROM main.${table}; INSERT INTO main.${into} SELECT ${columns} FROM other.${table}`,
        );
      }
    });
  }

  /** Returns the number of rows of each table that has several. */
  counts(): Readonly<Record<string, number>> {
    const countOf = (table: string) => this.#database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.["rows"];
    return this.read("count its rows", () => Object.fromEntries(lists.map((each) => [each, Number(countOf(each))])));
  }

  /** Throws when the file was removed or replaced. Other processes no longer read or write the open file. */
  #assertFile(): void {
    if (inodeOf(this.#file) === this.#inode) return;
    throw new Error(`${this.#file} was removed or replaced while it was in use`);
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}

/** Returns the number of a file within its disk. Windows has numbers that only a bigint holds. */
function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

/**
 * Opens the database of a state folder and creates both when they are absent. Throws a `StartFailure` with a line for
 * the operator.
 */
export function openStateDatabase(
  folder: string,
  { patienceMs = patienceMsDefault }: { readonly patienceMs?: number | undefined } = {},
): StateDatabase {
  makeStateFolder(folder);
  const file = join(folder, stateFileName);
  let database: DatabaseSync | undefined;
  try {
    closeSync(openSync(file, "a", 0o600));
    database = new DatabaseSync(file, { timeout: patienceMs });
    turnLogOn(database, patienceMs);
    database.exec("PRAGMA synchronous = FULL");
    bringUpToDate(database, file);
    return new StateDatabase(database, file);
  } catch (error) {
    database?.close();
    if (error instanceof StartFailure) throw error;
    throw new StartFailure(
      exitCodes.cannotCreate,
      `The state file ${file} cannot be used (${reasonOf(error)}): restore it, or move it away to start without any keys.`,
      { cause: error },
    );
  }
}

/** Holds a state folder until the result is called or this process ends in whatever way. Undefined while another process holds it. */
export function holdFolder(folder: string): (() => void) | undefined {
  makeStateFolder(folder);
  const file = join(folder, "up.lock");
  closeSync(openSync(file, "a", 0o600));
  const lock = new DatabaseSync(file);
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return () => lock.close();
  } catch (error) {
    lock.close();
    if (/locked/.test(reasonOf(error))) return undefined;
    throw error;
  }
}

const lockPollMs = 5;

/** Turns the write-ahead log on. While another process writes, SQLite refuses that at once, whatever its timeout is. */
function turnLogOn(database: DatabaseSync, patienceMs: number): void {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    try {
      database.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (performance.now() > endMs || !/locked/.test(reasonOf(error))) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs);
    }
  }
}

function bringUpToDate(database: DatabaseSync, file: string): void {
  inTransaction(database, () => {
    const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
    if (version > schemaSteps.length) {
      throw new StartFailure(exitCodes.config, `The state file ${file} is from a newer Trunkline: run that version.`);
    }
    for (const step of schemaSteps.slice(version)) database.exec(step);
    database.exec(`PRAGMA user_version = ${schemaSteps.length}`);
    const sums = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'response_sums'").get();
    if (sums === undefined) database.exec(responseSums);
    database.exec(signIns);
    database.exec(machineOffers);
    database.exec(lastBackup);
    database.exec(alarms);
    database.exec(history);
    database.exec(endUsers);
    database.exec(prices);
    database.exec(teamsAndPeople);
    database.exec(alerts);
  });
}

/**
 * Runs statements in a transaction that takes the write lock at once. A transaction that begins by reading can fail at
 * its first write instead of waiting.
 */
function inTransaction<Answer>(database: DatabaseSync, statements: () => Answer): Answer {
  database.exec("BEGIN IMMEDIATE");
  try {
    const answer = statements();
    database.exec("COMMIT");
    return answer;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function databaseIsAway(purpose: string, error: unknown): Fault {
  return new Fault("backend_unavailable", {
    message: "A store that this request needs is unavailable. Try again in a moment.",
    internal: `SQLite, asked to ${purpose}: ${reasonOf(error)}`,
    cause: error,
  });
}

export function pepperFile(stateDir: string): string {
  return join(stateDir, "pepper");
}

/**
 * Reads the pepper of a state folder; the first call creates it. Processes that start at once all get the same pepper.
 */
export function readOrMakePepper(stateDir: string): Pepper {
  makeStateFolder(stateDir);
  const file = pepperFile(stateDir);
  try {
    if (!existsSync(file)) makePepper(file);
    return pepperText.parse(readFileSync(file, "utf8").trim());
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `The file ${file} must hold a secret of at least ${pepperBytesMin} bytes that this user may read: restore it, or remove it if no keys were issued yet.`,
      { cause: error },
    );
  }
}

/**
 * Creates the file. It appears whole or not at all, and the first process that links it wins. A file system without hard
 * links, such as exFAT, gets a copy instead.
 */
export function makePepper(file: string, link: typeof linkSync = linkSync): void {
  const draft = `${file}.${process.pid}`;
  try {
    writeFileSync(draft, newPepperText(), { flag: "wx", mode: 0o600, flush: true });
    try {
      link(draft, file);
    } catch {
      copyFileSync(draft, file, constants.COPYFILE_EXCL);
    }
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

type SqlRow = Record<string, SQLOutputValue>;

/**
 * SQL in tagged templates. A value is always bound and never part of the statement's text. Each template is prepared
 * once. Node 24.9 has the same as `SQLTagStore`; Node 22 does not.
 */
export class SqlTags {
  readonly #database: DatabaseSync;
  readonly #statements = new WeakMap<TemplateStringsArray, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  get(parts: TemplateStringsArray, ...values: readonly SQLInputValue[]): SqlRow | undefined {
    return this.#statement(parts).get(...values);
  }

  all(parts: TemplateStringsArray, ...values: readonly SQLInputValue[]): SqlRow[] {
    return this.#statement(parts).all(...values);
  }

  /** Like `all`, one row after another, so that no number of rows fills the memory. */
  iterate(parts: TemplateStringsArray, ...values: readonly SQLInputValue[]): NodeJS.Iterator<SqlRow> {
    return this.#statement(parts).iterate(...values);
  }

  run(parts: TemplateStringsArray, ...values: readonly SQLInputValue[]): void {
    this.#statement(parts).run(...values);
  }

  #statement(parts: TemplateStringsArray): StatementSync {
    return this.#statements.getOrInsertComputed(parts, () => this.#database.prepare(parts.join("?")));
  }
}
