import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { type History, openHistory, slotLengths } from "#shared/history/history.ts";
import { Sums } from "#shared/history/sums.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

const dayMs = 86_400_000;
const noon = Date.UTC(2026, 0, 1, 12);

/** Opens the same history twice, as two gateways do. */
async function sqlitePlace(): Promise<readonly [History, History]> {
  const folder = folderOfTest();
  const [one, other] = [openStateDatabase(folder), openStateDatabase(folder)];
  onTestFinished(() => [one, other].forEach((each) => each.close()));
  return [openHistory({ kind: "sqlite", database: one }), openHistory({ kind: "sqlite", database: other })];
}

async function redisPlace(): Promise<readonly [History, History]> {
  const options = { url: server.url, keyPrefix: `trunkline-test-${randomUUID()}:`, commandTimeoutMs: 5_000 };
  const [one, other] = [await connectRedis(options), await connectRedis(options)];
  onTestFinished(() => [one, other].forEach((each) => each.close()));
  return [openHistory({ kind: "redis", redis: one }), openHistory({ kind: "redis", redis: other })];
}

function sumsOf(requests: number, model = "llama3"): Sums {
  const sums = new Sums();
  const ended = { failed: 0, promptTokens: 1, completionTokens: 2, answered: 0, firstTokenMs: 0, durationMs: 9 };
  for (let at = 0; at < requests; at += 1)
    sums.add({ ...ended, requests: 1, model }, { machine: undefined, cachedTokens: 0, code: "ok" });
  return sums;
}

async function requestsIn(history: History, length: keyof typeof slotLengths) {
  const found: [at: number, requests: number | undefined, series: number][] = [];
  const range = { length: slotLengths[length], fromMs: noon - dayMs, untilMs: noon + 4 * dayMs };
  await history.visit(range, (at, sums) => found.push([at - noon, sums.rowOf("").counts[0], sums.rows.size]));
  return found.toSorted(([one], [other]) => one - other);
}

describe.each([
  ["SQLite", sqlitePlace],
  ["Redis", redisPlace],
] as const)("the history in %s", (_, open) => {
  test("adds up what gateways write at the same moment, by the minute and by the hour", async () => {
    const [one, other] = await open();
    await Promise.all(
      Array.from({ length: 12 }, async (_each, index) =>
        (index % 2 ? one : other).add({
          minute: noon + (index % 3) * 60_000,
          sums: sumsOf(index + 1, `m${index % 4}`),
          gateway: `g${index}`,
          sequence: 1,
        }),
      ),
    );
    expect(await requestsIn(one, "minute")).toEqual([
      [0, 22, 5],
      [60_000, 26, 5],
      [120_000, 30, 5],
    ]);
    expect(await requestsIn(other, "hour")).toEqual([[0, 78, 5]]);
  });

  test("adds sums once that were sent twice, since their first answer was lost", async () => {
    const [one] = await open();
    const added = { minute: noon, sums: sumsOf(3), gateway: "g", sequence: 1 };
    await one.add(added);
    await one.add(added);
    await one.add({ ...added, sequence: 2 });
    expect(await requestsIn(one, "minute")).toEqual([[0, 6, 2]]);
  });

  test("tells since when it has sums, and nothing before the first", async () => {
    const [one] = await open();
    expect(await one.since()).toBeUndefined();
    await one.add({ minute: noon + 60_000, sums: sumsOf(1), gateway: "g", sequence: 1 });
    expect((await one.since()) ?? 0).toBeLessThanOrEqual(noon + 60_000);
    expect(await requestsIn(one, "hour")).toEqual([[0, 1, 2]]);
  });
});

test("SQLite drops minutes after two days, and keeps their hours", async () => {
  const [one] = await sqlitePlace();
  for (const day of [0, 3]) {
    await one.add({ minute: noon + day * dayMs, sums: sumsOf(1), gateway: "g", sequence: day + 1 });
  }
  expect(await requestsIn(one, "minute")).toEqual([[3 * dayMs, 1, 2]]);
  expect(await requestsIn(one, "hour")).toEqual([
    [0, 1, 2],
    [3 * dayMs, 1, 2],
  ]);
});

test("Redis drops a name with the minutes of an hour after two days", async () => {
  const keyPrefix = `trunkline-test-${randomUUID()}:`;
  const redis = await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs: 5_000 });
  onTestFinished(() => redis.close());
  const history = openHistory({ kind: "redis", redis });
  await history.add({ minute: noon, sums: sumsOf(1), gateway: "g", sequence: 1 });
  const leftOf = (length: number) => redis.run("look", (client) => client.ttl(`history:${length}:${noon / 1_000}`));
  expect(await leftOf(60)).toBeGreaterThan(2 * 86_400);
  expect(await leftOf(60)).toBeLessThanOrEqual(2 * 86_400 + 3_600);
});
