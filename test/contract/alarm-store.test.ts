import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type AlarmStore, openAlarmStore } from "#shared/alerts/alarm-store.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

/** Opens the same alarms twice, as two gateways do. */
async function sqlitePlace(): Promise<readonly [AlarmStore, AlarmStore]> {
  const folder = folderOfTest();
  const [one, other] = [openStateDatabase(folder), openStateDatabase(folder)];
  onTestFinished(() => [one, other].forEach((each) => each.close()));
  return [openAlarmStore({ kind: "sqlite", database: one }), openAlarmStore({ kind: "sqlite", database: other })];
}

async function redisPlace(): Promise<readonly [AlarmStore, AlarmStore]> {
  const options = { url: server.url, keyPrefix: `trunkline-test-${randomUUID()}:`, commandTimeoutMs: 5_000 };
  const [one, other] = [await connectRedis(options), await connectRedis(options)];
  onTestFinished(() => [one, other].forEach((each) => each.close()));
  return [openAlarmStore({ kind: "redis", redis: one }), openAlarmStore({ kind: "redis", redis: other })];
}

describe.each([
  ["SQLite", sqlitePlace],
  ["Redis", redisPlace],
] as const)("the alarms in %s", (_, open) => {
  test("are none at first, and no change that two gateways make at once is lost", async () => {
    const [one, other] = await open();
    expect(await one.read()).toEqual({ judgedAt: 0, alarms: [], gateways: {} });
    const names = Array.from({ length: 12 }, (_each, at) => `gateway-${at}`);
    await Promise.all(
      names.map((name, at) =>
        (at % 2 ? one : other).change((state) => ({
          ...state,
          gateways: { ...state.gateways, [name]: { name, seenAt: 1 } },
        })),
      ),
    );
    expect(Object.keys((await other.read()).gateways).toSorted()).toEqual(names.toSorted());
  });
});
