import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { openStateDatabase, schemaSteps } from "#shared/store/state-database.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { openUsage } from "#shared/usage/usage.ts";
import { SqliteLimitsBook } from "../../services/gateway/limits/open-limits.ts";
import { RedisLimitsBook } from "../../services/gateway/limits/redis-limits.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";
import { rowOf, settlementOf } from "./limits-book.contract.ts";

/** Released steps are never changed. */
const stepsOfThatVersion = 11;
const allDays = { from: "0000-01-01", to: "9999-12-31" };
const [day, keyId, model] = ["9998-02-01", "abcdefABCDEF", "llama3"];
const counts = { requests: 2, failed: 1, promptTokens: 10, completionTokens: 20, answered: 1, firstTokenMs: 30 };
const newer = rowOf({ team: "research", machine: "attic", promptTokens: 5, cost: 7 });

/** The rows after an update: those of 0.2.0, with what an answer under way had used by then, and a newer one. */
const updated = [
  rowOf({ ...counts, requests: 3, failed: 2, completionTokens: 24, durationMs: 40 }),
  { ...newer, machine: null },
];

test("usage in a state file of 0.2.0 is kept when it is opened, with what an answer under way had used", async () => {
  const folder = folderOfTest();
  const file = new DatabaseSync(join(folder, "trunkline.db"));
  file.exec(schemaSteps.slice(0, stepsOfThatVersion).join(""));
  file.exec(`
    INSERT INTO usage VALUES ('${day}', '${keyId}', '${model}', 2, 1, 10, 20, 1, 30, 40);
    PRAGMA user_version = ${stepsOfThatVersion}`);
  const none = { promptTokens: 0, answered: 0, firstTokenMs: 0, durationMs: 0 };
  const running = { day, keyId, model, requests: 1, failed: 1, ...none, completionTokens: 4 };
  file.prepare("INSERT INTO running (id, usage) VALUES (1, ?)").run(JSON.stringify(running));
  file.close();
  const database = openStateDatabase(folder);
  onTestFinished(() => database.close());
  const book = new SqliteLimitsBook(database, { clock: systemClock });
  book.bookRunning();
  await book.settle(settlementOf({ usage: [newer] }));
  expect((await openUsage({ kind: "sqlite", database }).read(allDays)).rows).toEqual(updated);
});

test("usage that a gateway of 0.2.0 wrote to Redis is kept, with what an answer of it had used when it was killed", async () => {
  const server = await redisUrl();
  const redis = await connectRedis({ url: server.url, keyPrefix: `${newToken()}:` });
  onTestFinished(() => (redis.close(), server.stop()));
  const used = {
    day,
    at: `usage:${day}`,
    fields: ["requests", "failed"].map((metric) => [`${keyId}:${metric}:${model}`, 1]),
  };
  used.fields.push([`${keyId}:completionTokens:${model}`, 4]);
  const fields = Object.entries({ ...counts, durationMs: 40 }).flatMap(([metric, count]) => [
    `${keyId}:${metric}:${model}`,
    count,
  ]);
  await redis.pipeline("write as 0.2.0 did", (batch) =>
    batch
      .hset(`usage:${day}`, ...fields)
      .zadd("usage-days", 0, day)
      .hset("running:old", "1", JSON.stringify({ spent: [], usage: [used], made: {} }))
      .zadd("gateways", 1, "old"),
  );
  const book = new RedisLimitsBook(redis, { clock: systemClock });
  await book.settle(settlementOf({ usage: [newer] }));
  const rows = async () => (await openUsage({ kind: "redis", redis }).read(allDays)).rows;
  await until(async () => (await rows())[0]?.requests === 3, { what: "the answer to be booked" });
  expect(await rows()).toEqual(updated);
});
