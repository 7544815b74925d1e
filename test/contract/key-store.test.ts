import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { RedisKeyStore } from "#shared/keys/redis-key-store.ts";
import { SqliteKeyStore } from "#shared/keys/sqlite-key-store.ts";
import { openStateDatabase } from "#shared/keys/state-database.ts";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { redisUrl, type SomeServer } from "../harness/lent-or-own.ts";
import { keyStoreContract } from "./key-store.contract.ts";

/** Far above the default: these tests are about what a store says, and share the machine with many others. */
const commandTimeoutMs = 5_000;

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

keyStoreContract("Redis", async () => {
  const keyPrefix = `trunkline-test-${randomUUID()}:`;
  return {
    open: async (options) =>
      new RedisKeyStore(await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs }), options),
  };
});

keyStoreContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-keys-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return {
    open: async (options) => new SqliteKeyStore(openStateDatabase(folder), { ...options, clock: systemClock }),
  };
});
