import type { Clock } from "../process/clock.ts";
import { keyRecord, type FoundKey, type KeyRecord } from "./key-record.ts";
import { recordAfterlifeMs, type KeyStore, type PepperClaim, type Revocation } from "./key-store.ts";
import type { KeyId } from "./key-token.ts";
import type { PepperFingerprint } from "./pepper.ts";
import { readStored } from "./read-stored.ts";
import type { StateDatabase } from "./state-database.ts";

/**
 * Keys in the embedded database. Nothing is dropped here by itself: a record past its afterlife is no longer shown,
 * and its tombstone is read off it.
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
    const row = this.#database.read("find a key", (sql) => sql.get`SELECT record FROM keys WHERE id = ${id}`);
    if (row === undefined) return { kind: "absent" };
    const record = recordOf(row);
    if (record.expiresAt > this.#lapsedBefore()) return { kind: "record", record };
    if (record.revokedAt !== undefined) return { kind: "absent" };
    return { kind: "tombstone", tombstone: { digest: record.digest, expiresAt: record.expiresAt } };
  }

  async issue(record: KeyRecord): Promise<void> {
    const { id, expiresAt } = record;
    const text = JSON.stringify(record);
    this.#database.change(
      "keep a new key",
      (sql) => sql.run`INSERT INTO keys (id, expires_at, record) VALUES (${id}, ${expiresAt}, ${text})`,
    );
  }

  async list(): Promise<readonly KeyRecord[]> {
    const rows = this.#database.read(
      "list keys",
      (sql) => sql.all`SELECT record FROM keys WHERE expires_at > ${this.#lapsedBefore()}`,
    );
    return rows.map(recordOf).sort((one, other) => one.createdAt - other.createdAt);
  }

  async revoke(id: KeyId, atMs: number): Promise<Revocation> {
    return this.#database.change("revoke a key", (sql): Revocation => {
      if (sql.get`SELECT 1 FROM keys WHERE id = ${id}` === undefined) return "unknown";
      const { changes } = sql.run`
        UPDATE keys SET record = json_set(record, '$.revokedAt', ${atMs})
        WHERE id = ${id} AND json_extract(record, '$.revokedAt') IS NULL`;
      return changes === 1 ? "revoked" : "already_revoked";
    });
  }

  async ready(): Promise<void> {
    this.#database.read("answer", (sql) => sql.get`SELECT 1`);
  }

  async claimPepper(fingerprint: PepperFingerprint): Promise<PepperClaim> {
    return this.#database.change("compare the pepper", (sql): PepperClaim => {
      const { changes } =
        sql.run`INSERT INTO pepper (only, fingerprint) VALUES (1, ${fingerprint}) ON CONFLICT DO NOTHING`;
      if (changes === 1) return "claimed";
      return sql.get`SELECT fingerprint FROM pepper`?.["fingerprint"] === fingerprint ? "matches" : "mismatch";
    });
  }

  async close(): Promise<void> {
    this.#database.close();
  }

  #lapsedBefore(): number {
    return this.#clock.wall() - this.#afterlifeMs;
  }
}

function recordOf(row: Record<string, unknown>): KeyRecord {
  return readStored(keyRecord, () => JSON.parse(String(row["record"])));
}
