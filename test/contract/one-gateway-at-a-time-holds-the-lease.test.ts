import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { openLease } from "../../services/gateway/placing/redis-lease.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { until } from "../harness/until.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

test("a gateway keeps the lease as long as it renews it, and another one has it within 5 s after that", async () => {
  const redis = await connectRedis({ url: server.url, keyPrefix: `lease-${process.pid}:`, commandTimeoutMs: 1_000 });
  onTestFinished(() => redis.close());
  const [one, other] = ["one", "other"].map((gateway) =>
    openLease({ kind: "redis", redis }, { name: "keeper", gateway, forMs: 4_500 }),
  );
  expect(await one?.hold()).toBe(true);
  expect(await other?.hold()).toBe(false);
  expect(await one?.hold()).toBe(true);
  await until(async () => other?.hold(), { what: "the other gateway to have the lease", timeoutMs: 5_000 });
  expect(await one?.hold()).toBe(false);
});
