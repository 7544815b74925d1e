import type { KeyChanges } from "#shared/records/key-changes.ts";
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { PepperFingerprint } from "#shared/keys/pepper.ts";
import { changesTimeoutMs, RedisKeyChanges } from "#shared/store/redis-key-changes.ts";
import { RedisKeyStore } from "#shared/store/redis-key-store.ts";
import { redisNamed } from "#shared/store/redis-records.ts";
import { SqliteKeyChanges, SqliteKeyStore } from "#shared/store/sqlite-key-store.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import { RedisMachineStore } from "#shared/store/redis-machine-store.ts";
import { SqliteMachineStore } from "#shared/store/sqlite-machine-store.ts";
import type { SessionStore } from "#shared/records/session-record.ts";
import { RedisSessionStore, SqliteSessionStore } from "#shared/store/session-stores.ts";
import type { NamedStores } from "#shared/records/named-records.ts";
import { sqliteNamed } from "#shared/store/sqlite-records.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

/** Where one test keeps its keys. Each opening is what another process would have, and is closed after the test. */
export interface KeyPlace {
  open(options?: { readonly afterlifeMs?: number }): Promise<KeyStore>;
  openChanges(): Promise<KeyChanges>;
  /** The records of machines beside the keys. */
  openMachines(): Promise<MachineStore>;
  /** The other records beside the keys, such as routes. */
  openNamed(): Promise<NamedStores>;
  /** The sessions of the console beside the keys. */
  openSessions(): Promise<SessionStore>;
  /** Puts a record there in the way of the first release, into a place that was not opened yet. */
  keepAsBefore(record: OldRecord): Promise<void>;
  /** Notes the only gateway as it notes itself while it serves. One of 0.2.0 notes its token alone. */
  noteGateway(note: string): Promise<void>;
  /** Takes everything away under whoever has it open. */
  empty(): Promise<void>;
}

/** A record of the first release, or what a later one may have added to it. */
export interface OldRecord {
  readonly id: KeyId;
  readonly pepper: PepperFingerprint;
  readonly expiresAt: number;
  readonly [field: string]: unknown;
}

/** Far above the default: these tests are about what a store says, and share the machine with many others. */
const commandTimeoutMs = 5_000;

/** What FLUSHALL would leave of it, on a server that others may use at the same time. */
export async function redisPlace(url: string): Promise<KeyPlace> {
  const keyPrefix = `trunkline-test-${randomUUID()}:`;
  const direct = new Redis(url);
  onTestFinished(() => direct.disconnect());
  return {
    async open(options) {
      const keys = new RedisKeyStore(await connectRedis({ url, keyPrefix, commandTimeoutMs }), options);
      onTestFinished(() => keys.close());
      return keys;
    },
    async openChanges() {
      const timeouts = { commandTimeoutMs: changesTimeoutMs, silenceMsMax: changesTimeoutMs };
      const changes = new RedisKeyChanges(await connectRedis({ url, keyPrefix, ...timeouts }), { clock: systemClock });
      onTestFinished(() => changes.close());
      return changes;
    },
    async openMachines() {
      const redis = await connectRedis({ url, keyPrefix, commandTimeoutMs });
      onTestFinished(() => redis.close());
      return new RedisMachineStore(redis);
    },
    async openNamed() {
      const redis = await connectRedis({ url, keyPrefix, commandTimeoutMs });
      onTestFinished(() => redis.close());
      return redisNamed(redis);
    },
    async openSessions() {
      const redis = await connectRedis({ url, keyPrefix, commandTimeoutMs });
      onTestFinished(() => redis.close());
      return new RedisSessionStore(redis);
    },
    async keepAsBefore(record) {
      const fields = Object.entries(record).flatMap(([field, value]) => [field, JSON.stringify(value)]);
      await direct.set(`${keyPrefix}pepper`, record.pepper);
      await direct.hset(`${keyPrefix}key:${record.id}`, ...fields);
      await direct.sadd(`${keyPrefix}keys`, record.id);
    },
    async noteGateway(note) {
      await direct.del(`${keyPrefix}gateways`);
      await direct.zadd(`${keyPrefix}gateways`, Date.now(), note);
    },
    async empty() {
      const names = await direct.keys(`${keyPrefix}*`);
      if (names.length > 0) await direct.del(...names);
    },
  };
}

/** The schema of the first release, word for word. */
const firstSchema = `
  CREATE TABLE keys (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE pepper (only INTEGER PRIMARY KEY CHECK (only = 1), fingerprint TEXT NOT NULL) STRICT;
  CREATE TABLE known_models (id TEXT PRIMARY KEY, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX known_models_by_age ON known_models (seen_at);
  PRAGMA user_version = 1;`;

export async function sqlitePlace(): Promise<KeyPlace> {
  const folder = folderOfTest();
  const file = join(folder, "trunkline.db");
  return {
    async open(options) {
      const keys = new SqliteKeyStore(openStateDatabase(folder), { ...options, clock: systemClock });
      onTestFinished(() => keys.close());
      return keys;
    },
    async openChanges() {
      const database = openStateDatabase(folder);
      const changes = new SqliteKeyChanges(database, { clock: systemClock });
      onTestFinished(() => {
        changes.close();
        database.close();
      });
      return changes;
    },
    async openMachines() {
      const database = openStateDatabase(folder);
      onTestFinished(() => database.close());
      return new SqliteMachineStore(database);
    },
    async openNamed() {
      const database = openStateDatabase(folder);
      onTestFinished(() => database.close());
      return sqliteNamed(database);
    },
    async openSessions() {
      const database = openStateDatabase(folder);
      onTestFinished(() => database.close());
      return new SqliteSessionStore(database);
    },
    async keepAsBefore(record) {
      const database = new DatabaseSync(file);
      database.exec(firstSchema);
      database.prepare("INSERT INTO pepper VALUES (1, ?)").run(record.pepper);
      database.prepare("INSERT INTO keys VALUES (?, ?, ?)").run(record.id, record.expiresAt, JSON.stringify(record));
      database.close();
    },
    async noteGateway(note) {
      const database = openStateDatabase(folder);
      const noted = { publicUrl: "http://127.0.0.1:8484", ...(note.includes(" ") && { gateway: note }) };
      await new SqliteMachineStore(database).noteSite(noted);
      database.close();
    },
    async empty() {
      for (const suffix of ["", "-wal", "-shm"]) await rm(file + suffix, { force: true });
    },
  };
}
