import type { RedisConnection } from "../process/redis-connection.ts";
import { readEach, readRecord, type UnreadRecord } from "../records/key-store.ts";
import { type SessionStore, storedSession, type StoredSession } from "../records/session-record.ts";
import { signIn, type SignIn, signInsKeptMs, signInsMax } from "../records/sign-in.ts";
import type { StateDatabase } from "./state-database.ts";

/** A hash that maps the id of each sign-in link and session to its record as JSON. */
export const redisSessionsAt = "sessions";

/** A sorted set of sign-ins as JSON, by their time. */
export const redisSignInsAt = "sign-ins";

export class RedisSessionStore implements SessionStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async write(record: StoredSession, nowMs: number): Promise<void> {
    const old = (await this.list()).filter(({ expiresAt }) => expiresAt <= nowMs).map(({ id }) => id);
    await this.#redis.run("keep a session", async (client) => {
      if (old.length > 0) await client.hdel(redisSessionsAt, ...old);
      await client.hset(redisSessionsAt, record.id, JSON.stringify(record));
    });
  }

  async find(id: string): Promise<StoredSession | undefined> {
    const text = await this.#redis.run("find a session", (client) => client.hget(redisSessionsAt, id));
    return text === null ? undefined : readRecord(storedSession, text);
  }

  async remove(id: string): Promise<boolean> {
    return (await this.#redis.run("end a session", (client) => client.hdel(redisSessionsAt, id))) === 1;
  }

  async list(unread?: UnreadRecord[]): Promise<readonly StoredSession[]> {
    const stored = await this.#redis.run("list sessions", (client) => client.hgetall(redisSessionsAt));
    return readEach(storedSession, Object.entries(stored), unread).toSorted(
      (one, other) => one.createdAt - other.createdAt,
    );
  }

  async noteSignIn(entry: SignIn): Promise<void> {
    await this.#redis.pipeline("note a sign-in", (batch) =>
      batch
        .zadd(redisSignInsAt, entry.at, JSON.stringify(entry))
        .zremrangebyscore(redisSignInsAt, "-inf", entry.at - signInsKeptMs)
        .zremrangebyrank(redisSignInsAt, 0, -signInsMax - 1),
    );
  }

  async signIns(entriesMax: number, unread?: UnreadRecord[]): Promise<readonly SignIn[]> {
    const texts = await this.#redis.run("list sign-ins", (client) => client.zrange(redisSignInsAt, -entriesMax, "-1"));
    const rows = texts.map((text) => ["sign-in", text]);
    return readEach(signIn, rows, unread);
  }
}

export class SqliteSessionStore implements SessionStore {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  async write(record: StoredSession, nowMs: number): Promise<void> {
    const { id, expiresAt } = record;
    this.#database.change("keep a session", (sql) => {
      sql.run`DELETE FROM sessions WHERE expires_at <= ${nowMs}`;
      sql.run`INSERT INTO sessions (id, expires_at, record) VALUES (${id}, ${expiresAt}, ${JSON.stringify(record)})`;
    });
  }

  async find(id: string): Promise<StoredSession | undefined> {
    const row = this.#database.read("find a session", (sql) => sql.get`SELECT record FROM sessions WHERE id = ${id}`);
    return row && readRecord(storedSession, row["record"]);
  }

  async remove(id: string): Promise<boolean> {
    return this.#database.change("end a session", (sql) => {
      const row = sql.get`SELECT id FROM sessions WHERE id = ${id}`;
      sql.run`DELETE FROM sessions WHERE id = ${id}`;
      return row !== undefined;
    });
  }

  async list(unread?: UnreadRecord[]): Promise<readonly StoredSession[]> {
    const rows = this.#database.read("list sessions", (sql) => sql.all`SELECT id, record FROM sessions`);
    return readEach(storedSession, rows, unread).toSorted((one, other) => one.createdAt - other.createdAt);
  }

  async noteSignIn(entry: SignIn): Promise<void> {
    this.#database.change("note a sign-in", (sql) => {
      sql.run`INSERT INTO sign_ins (at, entry) VALUES (${entry.at}, ${JSON.stringify(entry)})`;
      sql.run`DELETE FROM sign_ins WHERE at <= ${entry.at - signInsKeptMs}
        OR sequence <= (SELECT max(sequence) FROM sign_ins) - ${signInsMax}`;
    });
  }

  async signIns(entriesMax: number, unread?: UnreadRecord[]): Promise<readonly SignIn[]> {
    const rows = this.#database.read(
      "list sign-ins",
      (sql) => sql.all`SELECT sequence, entry FROM sign_ins ORDER BY sequence DESC LIMIT ${entriesMax}`,
    );
    return readEach(signIn, rows, unread).toReversed();
  }
}
