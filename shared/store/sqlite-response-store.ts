import type { KeyId } from "../keys/key-token.ts";
import type { Clock } from "../process/clock.ts";
import { type SealedResponse, type StoredResponses, storedResponsesMax } from "../records/stored-responses.ts";
import type { StateDatabase } from "./state-database.ts";

/** Responses in the embedded database. Those whose time is over are found no more, and deleted now and then. */
export class SqliteResponseStore implements StoredResponses {
  readonly #database: StateDatabase;
  readonly #clock: Pick<Clock, "wall">;
  readonly #max: number;

  constructor(database: StateDatabase, clock: Pick<Clock, "wall">, max = storedResponsesMax) {
    this.#database = database;
    this.#clock = clock;
    this.#max = max;
  }

  async put(key: KeyId, { id, sealed }: SealedResponse, keptMs: number): Promise<boolean> {
    const nowMs = Math.floor(this.#clock.wall());
    return this.#database.change("store a response", (sql) => {
      const stored = sql.get`
        INSERT OR IGNORE INTO responses (key_id, id, stored_at, expires_at, sealed)
        SELECT id, ${id}, ${nowMs}, ${nowMs + keptMs}, ${sealed}
        FROM keys WHERE id = ${key} AND record ->> '$.revokedAt' IS NULL RETURNING id`;
      sql.run`
        DELETE FROM responses WHERE rowid IN (
          SELECT rowid FROM responses WHERE key_id = ${key}
          ORDER BY stored_at DESC, rowid DESC LIMIT -1 OFFSET ${this.#max})`;
      return stored !== undefined;
    });
  }

  async find(key: KeyId, ids: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const rows = this.#database.read(
      "find responses",
      (sql) => sql.all`
        SELECT sealed FROM json_each(${JSON.stringify(ids)}) AS named
        LEFT JOIN responses ON key_id = ${key} AND responses.id = named.value
        AND expires_at > ${Math.floor(this.#clock.wall())}
        ORDER BY named.key`,
    );
    return rows.map(({ sealed }) => (sealed instanceof Uint8Array ? sealed : undefined));
  }

  async bytesOf(key: KeyId, ids: readonly string[]): Promise<number> {
    const row = this.#database.read(
      "measure responses",
      (sql) => sql.get`
        SELECT sum(length(sealed)) AS bytes FROM responses
        WHERE key_id = ${key} AND id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    );
    return Number(row?.["bytes"]);
  }

  async remove(key: KeyId, id: string): Promise<boolean> {
    const removed = this.#database.change(
      "delete a response",
      (sql) => sql.get`
        DELETE FROM responses WHERE key_id = ${key} AND id = ${id}
        AND expires_at > ${Math.floor(this.#clock.wall())} RETURNING id`,
    );
    return removed !== undefined;
  }

  async removeExpired(): Promise<void> {
    this.#database.change("delete old responses", (sql) => {
      sql.run`DELETE FROM responses WHERE expires_at <= ${Math.floor(this.#clock.wall())}`;
    });
  }
}
