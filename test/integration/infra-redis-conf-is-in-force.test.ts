import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { filledEnvironment } from "../harness/infra/compose-file.ts";
import { startConfiguredRedis } from "../harness/infra/configured-servers.ts";
import { lentOnly } from "../harness/found-servers.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { readRedisInfo } from "../harness/redis-server.ts";

describe.skipIf(lentOnly("redis"))("Redis with infra/redis.conf", () => {
  let server: OwnServer;
  beforeAll(async () => void (server = await startConfiguredRedis(filledEnvironment())));
  afterAll(() => server.stop());

  function client(): Redis {
    const redis = new Redis(server.url, { protocol: 2, retryStrategy: () => null });
    onTestFinished(() => redis.disconnect());
    return redis;
  }

  test("Redis with infra/redis.conf has its settings in force", async () => {
    const redis = client();
    const names = ["appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy", "protected-mode"];
    const told = await Promise.all(names.map(async (name) => (await redis.config("GET", name)) ?? []));
    expect(Object.fromEntries(told.map((pair) => [...pair].map(String)))).toEqual({
      appendonly: "yes",
      appendfsync: "everysec",
      save: "",
      maxmemory: String(512 * 1024 * 1024),
      "maxmemory-policy": "noeviction",
      "protected-mode": "yes",
    });
  });

  test.each([
    ["no password", "redis://", "NOAUTH"],
    ["another password", "redis://:opensesame@", "WRONGPASS"],
  ])("Redis with infra/redis.conf tells nothing to whoever has %s", async (_, begin, refusal) => {
    await expect(readRedisInfo(new URL(begin + new URL(server.url).host))).rejects.toThrow(refusal);
  });

  test("Redis with infra/redis.conf has what it acknowledged when it is killed the moment after", async () => {
    await client().set("revoked", "yes");
    await server.restart();
    expect(await client().get("revoked")).toBe("yes");
  });
});
