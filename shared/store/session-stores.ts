import type { RedisConnection } from "../process/redis-connection.ts";
import { readEach, readRecord, type UnreadRecord } from "../records/key-store.ts";
import { type SessionRecord, sessionRecord, type SessionStore } from "../records/session-record.ts";
import type { StateDatabase } from "./state-database.ts";

/** A hash that maps the id of each sign-in link and session to its record as JSON. */
export const redisSessionsAt = "sessions";

export class RedisSessionStore implements SessionStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async write(record: SessionRecord, nowMs: number): Promise<void> {
    const old = (await this.list()).filter(({ expiresAt }) => expiresAt <= nowMs).map(({ id }) => id);
    await this.#redis.run("keep a session", async (client) => {
      if (old.length > 0) await client.hdel(redisSessionsAt, ...old);
      await client.hset(redisSessionsAt, record.id, JSON.stringify(record));
    });
  }

  async find(id: string): Promise<SessionRecord | undefined> {
    const text = await this.#redis.run("find a session", (client) => client.hget(redisSessionsAt, id));
    return text === null ? undefined : readRecord(sessionRecord, text);
  }

  async remove(id: string): Promise<boolean> {
    return (await this.#redis.run("end a session", (client) => client.hdel(redisSessionsAt, id))) === 1;
  }

  async list(unread?: UnreadRecord[]): Promise<readonly SessionRecord[]> {
    const stored = await this.#redis.run("list sessions", (client) => client.hgetall(redisSessionsAt));
    return readEach(sessionRecord, Object.entries(stored), unread).toSorted(
      (one, other) => one.createdAt - other.createdAt,
    );
  }
}

export class SqliteSessionStore implements SessionStore {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  async write(record: SessionRecord, nowMs: number): Promise<void> {
    const { id, expiresAt } = record;
    this.#database.change("keep a session", (sql) => {
      sql.run`DELETE FROM sessions WHERE expires_at <= ${nowMs}`;
      sql.run`INSERT INTO sessions (id, expires_at, record) VALUES (${id}, ${expiresAt}, ${JSON.stringify(record)})`;
    });
  }

  async find(id: string): Promise<SessionRecord | undefined> {
    const row = this.#database.read("find a session", (sql) => sql.get`SELECT record FROM sessions WHERE id = ${id}`);
    return row && readRecord(sessionRecord, row["record"]);
  }

  async remove(id: string): Promise<boolean> {
    return this.#database.change("end a session", (sql) => {
      const row = sql.get`SELECT id FROM sessions WHERE id = ${id}`;
      sql.run`DELETE FROM sessions WHERE id = ${id}`;
      return row !== undefined;
    });
  }

  async list(unread?: UnreadRecord[]): Promise<readonly SessionRecord[]> {
    const rows = this.#database.read("list sessions", (sql) => sql.all`SELECT id, record FROM sessions`);
    return readEach(sessionRecord, rows, unread).toSorted((one, other) => one.createdAt - other.createdAt);
  }
}
