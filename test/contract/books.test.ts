import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openStateDatabase } from "#shared/keys/state-database.ts";
import { connectRedis, type RedisConnection } from "#shared/process/redis-connection.ts";
import { RedisUsage } from "#shared/usage/redis-usage.ts";
import { SqliteUsage } from "#shared/usage/sqlite-usage.ts";
import { spentAt } from "../../services/gateway/limits/redis-limits.ts";
import { RedisBooks } from "../../services/gateway/settlement/redis-books.ts";
import { SqliteBooks } from "../../services/gateway/settlement/sqlite-books.ts";
import { redisUrl, type SomeServer } from "../harness/lent-or-own.ts";
import { batchOf, booksContract } from "./books.contract.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

const openRedis = (keyPrefix: string): Promise<RedisConnection> =>
  connectRedis({ url: server.url, keyPrefix, commandTimeoutMs: 5_000 });

booksContract("Redis", async () => {
  const redis = await openRedis(`trunkline-test-${randomUUID()}:`);
  return {
    books: new RedisBooks(redis),
    usage: new RedisUsage(redis),
    spentOf: async (keyId, period) => Number(await redis.run("look", (each) => each.get(spentAt(keyId, period)))),
    close: () => redis.close(),
  };
});

booksContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-books-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const database = openStateDatabase(folder);
  const books = new SqliteBooks(database);
  return {
    books,
    usage: new SqliteUsage(database),
    spentOf: async (keyId, period) => books.spentOf(keyId, period),
    close: () => database.close(),
  };
});

test("gateways that write into one Redis know how many they are", async () => {
  const redis = await openRedis(`trunkline-test-${randomUUID()}:`);
  onTestFinished(() => redis.close());
  const books = new RedisBooks(redis);
  expect(await books.write(batchOf({ gateway: "one" }))).toEqual({ gateways: 1 });
  expect(await books.write(batchOf({ gateway: "two" }))).toEqual({ gateways: 2 });
  expect(await books.write(batchOf({ gateway: "one", sequence: 2 }))).toEqual({ gateways: 2 });
});
