import { isDeepStrictEqual } from "node:util";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

const emptied = /emptied/;

describe.skipIf(lentOnly("redis"))("a gateway whose Redis was emptied", () => {
  let site: SiteOnRedis;
  let redis: Redis;
  beforeEach(async () => {
    site = await SiteOnRedis.start({ logLevel: "info" });
    redis = new Redis(site.redis.url);
  });
  afterEach(async () => {
    redis.disconnect();
    await site[Symbol.asyncDispose]();
  });

  const readyz = async (): Promise<{ status: number; told: unknown }> => {
    const response = await fetch(`${site.gateway.operationsUrl}/readyz`);
    return { status: response.status, told: await response.json() };
  };
  const founded = async (): Promise<number> =>
    (await MetricsText.scrape(site.gateway.operationsUrl)).value("trunkline_key_store_founded");

  test("a gateway whose Redis was emptied is not ready, says so in readiness, metric, log and status, and is well again once a key is issued", async () => {
    const { endpoint } = await site.knownKey();
    const admin = await site.admin();
    // A Redis that is late for a moment, on a busy machine, is a reason of its own.
    const calm = {
      status: 200,
      told: { ready: true, checks: { serving: true, broker: true, keys: true }, reasons: [] },
    };
    await until(async () => isDeepStrictEqual(await readyz(), calm), { what: "the gateway to report no trouble" });
    expect(await founded()).toBe(1);
    await redis.flushall();
    const told = async (): Promise<unknown> => {
      const { status, told: body } = await readyz();
      return emptied.test(JSON.stringify(body)) && { status, body };
    };
    expect(await until(told, { what: "the gateway to report the emptied store" })).toMatchObject({
      status: 503,
      body: { ready: false, checks: { keys: false } },
    });
    expect(await founded()).toBe(0);
    expect(site.gateway.logged.join("")).toMatch(emptied);
    expect((await endpoint.models()).status).toBe(200);

    const operations = { TRUNKLINE_ADMIN_KEY: admin.key, TRUNKLINE_OPERATIONS_URL: site.gateway.operationsUrl };
    expect((await trunklineHere(["status"], operations)).err).toMatch(emptied);

    await site.operator.issue();
    const well = async (): Promise<boolean> => (await readyz()).status === 200;
    await until(well, { what: "the gateway to be ready" });
    expect(await founded()).toBe(1);
  });

  test("a gateway whose Redis was emptied still serves its known keys, and each of them can be revoked, with its running requests", async () => {
    const [one, other] = [await site.knownKey(), await site.knownKey()];
    const stream = await one.endpoint.stream({ model: "scripted", says: "/script tokens=100000 delay_ms=20" });
    await until(() => stream.text !== "", { what: "the first token" });
    await redis.flushall();
    await until(async () => (await readyz()).status === 503, { what: "the gateway to see that the store is empty" });
    expect((await one.endpoint.models()).status).toBe(200);
    expect((await site.keys("revoke", one.record.id)).out).toContain("is revoked");
    await stream.over;
    expect(stream.events.at(-1)).toContain("key_invalid");
    expect(await one.endpoint.models()).toMatchObject({ status: 401, code: "key_invalid" });
    expect((await other.endpoint.models()).status).toBe(200);
    await expect(site.operator.change(other.record.id, { action: "disabled" })).rejects.toThrow("holds no keys");
    expect(await founded()).toBe(0);
  });
});

test.skipIf(lentOnly("redis"))(
  "a gateway on a store that was never used is ready, and says that it holds no keys",
  async () => {
    await using site = await SiteOnRedis.start();
    await using other = await startGatewayInProcess({ redisUrl: site.redis.url });
    const told = async (): Promise<unknown> => {
      const response = await fetch(`${other.operationsUrl}/readyz`);
      const body = await response.text();
      return body.includes("never used") && { status: response.status, ...(JSON.parse(body) as object) };
    };
    expect(await until(told, { what: "the gateway to report a store without keys" })).toMatchObject({
      status: 200,
      ready: true,
    });
  },
);
