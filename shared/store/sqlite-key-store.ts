import { setImmediate } from "node:timers/promises";
import { type KeyChanges, type KeyChangesListener, subjectOf, tellEntry } from "../records/key-changes.ts";
import { z } from "zod";
import type { Clock, Timer } from "../process/clock.ts";
import { auditEntriesMax, auditEntry, type AuditEntry } from "../records/audit-entry.ts";
import { type FoundKey, keyRecord, type KeyRecord, keyTombstone } from "../records/key-record.ts";
import {
  fitsQuery,
  foreignPepper,
  type KeyStore,
  type LogQuery,
  readEach,
  readRecord,
  readStored,
  recordAfterlifeMs,
  unfoundedStore,
  type UnreadRecord,
  type Written,
} from "../records/key-store.ts";
import type { KeyId } from "../keys/key-token.ts";
import { site } from "../records/machine-record.ts";
import { assertRead, isNew, readGatewayNote, type SiteGateway } from "../records/site-gateways.ts";
import { prefixOf } from "./sqlite-response-store.ts";
import { pepperFingerprint, type PepperFingerprint } from "../keys/pepper.ts";
import type { SqlTags, StateDatabase } from "./state-database.ts";

/** Entries of the trail that are read at once. */
const entriesPerPage = 500;

/**
 * Keys in the embedded database. The store itself drops no record. A record past its afterlife is no longer shown, and
 * its tombstone is derived from the record. A key that came from Redis after its afterlife has the tombstone alone.
 */
export class SqliteKeyStore implements KeyStore {
  readonly #database: StateDatabase;
  readonly #clock: Pick<Clock, "wall">;
  readonly #afterlifeMs: number;

  constructor(
    database: StateDatabase,
    options: { readonly clock: Pick<Clock, "wall">; readonly afterlifeMs?: number },
  ) {
    this.#database = database;
    this.#clock = options.clock;
    this.#afterlifeMs = options.afterlifeMs ?? recordAfterlifeMs;
  }

  async find(id: KeyId): Promise<FoundKey> {
    const row = this.#database.read("find a key", (sql) => rowOf(sql, id));
    if (row === undefined) {
      if ((await this.peppers()).length === 0) throw unfoundedStore();
      return { kind: "absent" };
    }
    if (!this.#hasLapsed(row)) return { kind: "record", record: recordOf(row) };
    const tombstone = tombstoneIn(row);
    return tombstone === undefined ? { kind: "absent" } : { kind: "tombstone", tombstone };
  }

  async issue(record: KeyRecord, entry: AuditEntry): Promise<void> {
    this.#database.change("keep a new key", (sql) => {
      const peppers = kept(sql);
      if (peppers.length === 0) keepPeppers(sql, [record.pepper]);
      else if (!peppers.includes(record.pepper)) throw foreignPepper();
      const { id, expiresAt } = record;
      sql.run`INSERT INTO keys (id, expires_at, record) VALUES (${id}, ${expiresAt}, ${JSON.stringify(record)})`;
      note(sql, entry);
    });
  }

  async replace(record: KeyRecord, entry: AuditEntry): Promise<Written> {
    const { id, version, expiresAt } = record;
    return this.#database.change("change a key", (sql) => {
      const row = rowOf(sql, id);
      if (row === undefined || this.#hasLapsed(row) || recordOf(row).version !== version - 1) return "conflict";
      sql.run`UPDATE keys SET record = ${JSON.stringify(record)}, expires_at = ${expiresAt} WHERE id = ${id}`;
      if (record.revokedAt !== undefined)
        sql.run`DELETE FROM responses WHERE key_id IN (${id}, ${prefixOf.capture + id})`;
      note(sql, entry);
      return "written";
    });
  }

  async forget(id: KeyId, entry: AuditEntry): Promise<Written> {
    return this.#database.change("revoke a key", (sql) => {
      const row = rowOf(sql, id);
      if (kept(sql).length === 0) {
        note(sql, entry);
        return "written";
      }
      if (row === undefined || !this.#hasLapsed(row) || tombstoneIn(row) === undefined) return "conflict";
      sql.run`UPDATE keys SET record = json_set(record, '$.revokedAt', ${entry.at}) WHERE id = ${id}`;
      sql.run`DELETE FROM responses WHERE key_id IN (${id}, ${prefixOf.capture + id})`;
      note(sql, entry);
      return "written";
    });
  }

  async list(unread?: UnreadRecord[]): Promise<readonly KeyRecord[]> {
    const rows = this.#database.read(
      "list keys",
      (sql) => sql.all`SELECT id, record FROM keys WHERE expires_at > ${this.#lapsedBefore()}`,
    );
    return readEach(keyRecord, rows, unread).sort((one, other) => one.createdAt - other.createdAt);
  }

  async log(query: LogQuery, unread?: UnreadRecord[]): Promise<readonly AuditEntry[]> {
    const keys = query.keys === undefined ? null : JSON.stringify(query.keys);
    const rows: object[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    while (rows.length < query.entriesMax) {
      const page = this.#database.read(
        "read the audit trail",
        (sql) => sql.all`
          SELECT sequence, entry FROM audit
          WHERE sequence < ${before} AND (${keys} IS NULL OR key_id IN (SELECT value FROM json_each(${keys})))
          ORDER BY sequence DESC LIMIT ${entriesPerPage}`,
      );
      rows.push(...page.filter((row) => fitsQuery(query, row["entry"])));
      if (page.length < entriesPerPage) break;
      before = Number(page.at(-1)?.["sequence"]);
      // A rare entry is looked for in the whole trail, and a gateway has streams to serve meanwhile.
      await setImmediate();
    }
    return readEach(auditEntry, rows.slice(0, query.entriesMax), unread).toReversed();
  }

  /** An embedded store has one gateway. It notes itself with its site, and one of 0.2.0 replaces the note by its own. */
  async gateways(): Promise<readonly SiteGateway[]> {
    return this.#database.read("tell its gateway", gatewaysOf);
  }

  async ready(): Promise<void> {
    this.#database.read("answer", (sql) => sql.get`SELECT 1`);
  }

  async state(): Promise<{ readonly founded: boolean }> {
    return { founded: (await this.peppers()).length > 0 };
  }

  async peppers(): Promise<readonly PepperFingerprint[]> {
    return this.#database.read("compare the pepper", kept);
  }

  async addPepper(fingerprint: PepperFingerprint): Promise<void> {
    this.#database.change("note a pepper", (sql) => {
      const peppers = kept(sql);
      if (peppers.length === 0) throw unfoundedStore();
      if (!peppers.includes(fingerprint)) keepPeppers(sql, [fingerprint, ...peppers]);
    });
  }

  async awaitReplica(): Promise<"none"> {
    return "none";
  }

  async close(): Promise<void> {
    this.#database.close();
  }

  #hasLapsed(row: Record<string, unknown>): boolean {
    return Number(row["expires_at"]) <= this.#lapsedBefore();
  }

  #lapsedBefore(): number {
    return this.#clock.wall() - this.#afterlifeMs;
  }
}

function rowOf(sql: SqlTags, id: KeyId) {
  return sql.get`SELECT expires_at, record FROM keys WHERE id = ${id}`;
}

function recordOf(row: Record<string, unknown>): KeyRecord {
  return readRecord(keyRecord, row["record"]);
}

const lapsedKey = z.object({ ...keyTombstone.shape, revokedAt: z.number().optional() });

/** Returns the tombstone of a lapsed key; undefined if the key was revoked. */
function tombstoneIn(row: Record<string, unknown>): z.output<typeof keyTombstone> | undefined {
  const { revokedAt, ...tombstone } = readRecord(lapsedKey, row["record"]);
  return revokedAt === undefined ? tombstone : undefined;
}

function kept(sql: SqlTags): PepperFingerprint[] {
  const row = sql.get`SELECT fingerprint FROM pepper`;
  return readStored(z.array(pepperFingerprint), () => (row === undefined ? [] : String(row["fingerprint"]).split(",")));
}

function gatewaysOf(sql: SqlTags): SiteGateway[] {
  const row = sql.get`SELECT noted FROM site WHERE noted <> '{}'`;
  return row === undefined ? [] : [readGatewayNote(readRecord(site.partial(), row["noted"]).gateway)];
}

export function isFounded(sql: SqlTags): boolean {
  return kept(sql).length > 0;
}

/** Writes the peppers of the keys, which found the store. */
export function keepPeppers(sql: SqlTags, fingerprints: readonly PepperFingerprint[]): void {
  const text = fingerprints.join(",");
  sql.run`INSERT INTO pepper (only, fingerprint) VALUES (1, ${text}) ON CONFLICT DO UPDATE SET fingerprint = ${text}`;
}

/** Writes an audit entry. Call it in the transaction of the change that the entry describes. */
export function note(sql: SqlTags, entry: AuditEntry): void {
  if (isNew(entry.action)) assertRead([entry.action], gatewaysOf(sql), entry);
  copyEntry(sql, entry);
}

/** Writes an entry of another store's audit trail. */
export function copyEntry(sql: SqlTags, entry: AuditEntry): void {
  sql.run`INSERT INTO audit (key_id, entry) VALUES (${subjectOf(entry)}, ${JSON.stringify(entry)})`;
  sql.run`DELETE FROM audit WHERE sequence <= (SELECT max(sequence) FROM audit) - ${auditEntriesMax}`;
}

/** The polling interval. One poll takes microseconds. */
const lookIntervalMs = 100;

/**
 * Polls for new entries of the audit trail. Their writer is another process that has the file open, or this process.
 * The database would not report a process's own writes.
 */
export class SqliteKeyChanges implements KeyChanges {
  readonly #database: StateDatabase;
  readonly #clock: Pick<Clock, "every">;
  #timer: Timer | undefined;
  #lastSeen: number | undefined;

  constructor(database: StateDatabase, options: { readonly clock: Pick<Clock, "every"> }) {
    this.#database = database;
    this.#clock = options.clock;
  }

  follow(listener: KeyChangesListener): void {
    this.#look(listener);
    this.#timer = this.#clock.every(lookIntervalMs, () => this.#look(listener));
  }

  close(): void {
    this.#timer?.cancel();
  }

  #look(listener: KeyChangesListener): void {
    try {
      if (this.#lastSeen === undefined) {
        const last = this.#database.read(
          "find the last change",
          (sql) => sql.get`SELECT max(sequence) AS last FROM audit`,
        );
        this.#lastSeen = Number(last?.["last"] ?? 0);
        listener.onGap();
      }
      const lastSeen = this.#lastSeen;
      const rows = this.#database.read(
        "tell of changed keys",
        (sql) => sql.all`SELECT sequence, key_id, entry FROM audit WHERE sequence >= ${lastSeen} ORDER BY sequence`,
      );
      // The numbers begin at 1. Those of a restored trail go on behind the last one that was replaced.
      const before = lastSeen > 0 ? rows.shift()?.["sequence"] : Number(rows[0]?.["sequence"] ?? 1) - 1;
      if (before !== lastSeen) throw new Error("a restored store has another trail");
      for (const { sequence, key_id: subject, entry } of rows) {
        tellEntry({ subject: String(subject), text: String(entry) }, listener);
        this.#lastSeen = Number(sequence);
      }
      listener.onHeard();
    } catch {
      this.#lastSeen = undefined;
      listener.onAway();
    }
  }
}
