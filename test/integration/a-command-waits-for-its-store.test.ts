import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { openStateDatabase } from "#shared/store/state-database.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { issueKey, launchTrunkline, testPepper, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

test.skipIf(lentOnly("redis"))("a key is issued over a Redis that is half a second away", async () => {
  await using redis = await startRedisServer();
  await using way = await TcpProxy.before(redis.url);
  way.latencyMs = 250;
  const near = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
  const { id } = await issueKey({ ...near, TRUNKLINE_REDIS_URL: `redis://127.0.0.1:${way.port}` });
  const { stdout } = await trunkline(["keys", "list", "--json"], near);
  expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ id })]);
});

test("a key is issued when another process has ended its write, which gateways have given up waiting for", async () => {
  const folder = folderOfTest();
  const store = { TRUNKLINE_STATE_DIR: folder };
  await issueKey(store);
  const writer = new DatabaseSync(join(folder, "trunkline.db"));
  const gateway = openStateDatabase(folder);
  onTestFinished(() => [writer, gateway].forEach((database) => database.close()));
  writer.exec("BEGIN IMMEDIATE");
  await using command = await launchTrunkline(["keys", "issue", "--name", "late", "--json"], store);
  for (const _ of ["while the command starts", "while it waits"]) {
    expect(() => gateway.change("write as well", () => undefined)).toThrow("is unavailable");
  }
  expect(command.ended).toBe(false);
  writer.exec("COMMIT");
  await until(() => command.ended, { what: "the command to end", timeoutMs: 5_000 });
  expect([await command.exit(), JSON.parse(await command.stdout())]).toEqual([
    0,
    expect.objectContaining({ name: "late" }),
  ]);
});
