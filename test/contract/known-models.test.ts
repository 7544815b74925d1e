import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { openStateDatabase } from "#shared/store/state-database.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { RedisKnownModels, SqliteKnownModels } from "#shared/store/known-models.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { knownModelsContract } from "./known-models.contract.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

knownModelsContract("Redis", async (options) => {
  const keyPrefix = `trunkline-test-${randomUUID()}:`;
  const openOne = async (): Promise<RedisKnownModels> => {
    const redis = await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs: 5_000 });
    onTestFinished(() => redis.close());
    return new RedisKnownModels(redis, options);
  };
  return [await openOne(), await openOne()];
});

knownModelsContract("SQLite", async (options) => {
  const folder = folderOfTest();
  const openOne = (): SqliteKnownModels => {
    const database = openStateDatabase(folder);
    onTestFinished(() => database.close());
    return new SqliteKnownModels(database, options);
  };
  return [openOne(), openOne()];
});
