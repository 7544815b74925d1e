import { type KeyId, keyId } from "../keys/key-token.ts";
import type { Clock } from "../process/clock.ts";
import {
  positionHeldMs,
  type PutOutcome,
  type SealedResponse,
  type Shelf,
  type StoredResponses,
  storedResponsesMax,
  type StoringTerms,
} from "../records/stored-responses.ts";
import type { SqlTags, StateDatabase } from "./state-database.ts";

/** Stands before the key of a text in the table. The length of a prefix tells the texts of its shelf: no key has a colon. */
export const prefixOf = { response: "", capture: "capture:" } as const;

/** Responses in the embedded database. Those whose time is over are found no more, and deleted now and then. */
export class SqliteResponseStore implements StoredResponses {
  readonly #database: StateDatabase;
  readonly #clock: Pick<Clock, "wall">;
  readonly #prefix: string;
  readonly #max: number;
  /** The ends of held positions. They are not in the file: a commit holds the event loop for a millisecond. */
  readonly #held = new Map<string, number>();

  constructor(
    database: StateDatabase,
    clock: Pick<Clock, "wall">,
    shelf: Shelf = "response",
    max = storedResponsesMax,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#prefix = prefixOf[shelf];
    this.#max = max;
  }

  async put(key: KeyId, { id, sealed }: SealedResponse, terms: StoringTerms): Promise<PutOutcome> {
    const { keptMs, keyBytesMax, siteBytesMax } = terms;
    return this.#change("store a response", (sql, nowMs) => {
      const open = sql.get`SELECT id FROM keys WHERE id = ${key} AND record ->> '$.revokedAt' IS NULL`;
      if (open === undefined) return "closed";
      if (sql.get`SELECT id FROM responses WHERE key_id = ${this.#prefix + key} AND id = ${id}` !== undefined)
        return "known";
      const site = sql.get`
        SELECT total(bytes) AS bytes FROM response_sums WHERE instr(key_id, ':') = ${this.#prefix.length}`;
      if (Number(site?.["bytes"]) + sealed.byteLength > siteBytesMax) return "full";
      sql.run`
        INSERT INTO responses (key_id, id, stored_at, expires_at, sealed)
        VALUES (${this.#prefix + key}, ${id}, ${nowMs}, ${nowMs + keptMs}, ${sealed})`;
      const isOver = () => sql.get`
        SELECT 1 FROM response_sums
        WHERE key_id = ${this.#prefix + key} AND entries > 1 AND (entries > ${this.#max} OR bytes > ${keyBytesMax})`;
      while (isOver() !== undefined) {
        sql.run`
          DELETE FROM responses WHERE rowid = (
            SELECT rowid FROM responses WHERE key_id = ${this.#prefix + key} ORDER BY stored_at, rowid LIMIT 1)`;
      }
      return "stored";
    });
  }

  async holdPosition(key: KeyId, conversation: string, positionsMax: number): Promise<string | undefined> {
    const nowMs = this.#clock.wall();
    for (const [position, endMs] of this.#held) {
      if (endMs > nowMs) break;
      this.#held.delete(position);
    }
    const rows = this.#database.read(
      "find free positions",
      (sql) => sql.all`
        SELECT id FROM responses WHERE key_id = ${this.#prefix + key} AND id >= ${conversation} AND id < ${`${conversation}/`}
        AND expires_at > ${Math.floor(nowMs)}`,
    );
    const taken = new Set(rows.map(({ id }) => id));
    if (!taken.has(conversation)) return undefined;
    for (let at = 1; at <= positionsMax; at += 1) {
      const position = `${conversation}.${at}`;
      if (taken.has(position) || this.#held.has(position)) continue;
      this.#held.set(position, nowMs + positionHeldMs);
      return position;
    }
    return undefined;
  }

  async find(key: KeyId, ids: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const rows = this.#database.read(
      "find responses",
      (sql) => sql.all`
        SELECT sealed FROM json_each(${JSON.stringify(ids)}) AS named
        LEFT JOIN responses ON key_id = ${this.#prefix + key} AND responses.id = named.value
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
        WHERE key_id = ${this.#prefix + key} AND id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    );
    return Number(row?.["bytes"]);
  }

  async holders(): Promise<readonly KeyId[]> {
    const { length } = this.#prefix;
    const rows = this.#database.read(
      "find keys with responses",
      (sql) => sql.all`
        SELECT substr(key_id, ${length + 1}) AS id FROM response_sums WHERE instr(key_id, ':') = ${length}`,
    );
    return rows.map(({ id }) => keyId.parse(id));
  }

  async remove(key: KeyId, id: string): Promise<boolean> {
    const removed = this.#database.change(
      "delete a response",
      (sql) => sql.get`
        DELETE FROM responses WHERE key_id = ${this.#prefix + key} AND id = ${id}
        AND expires_at > ${Math.floor(this.#clock.wall())} RETURNING id`,
    );
    return removed !== undefined;
  }

  async removeExpired(): Promise<void> {
    this.#change("delete old responses", () => undefined);
  }

  /** Runs statements once the responses that have ended are deleted, so that nobody counts them. */
  #change<Answer>(purpose: string, statements: (sql: SqlTags, nowMs: number) => Answer): Answer {
    const nowMs = Math.floor(this.#clock.wall());
    return this.#database.change(purpose, (sql) => {
      sql.run`DELETE FROM responses WHERE expires_at <= ${nowMs}`;
      return statements(sql, nowMs);
    });
  }
}
