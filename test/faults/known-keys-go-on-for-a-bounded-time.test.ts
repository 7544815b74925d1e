import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { until } from "../harness/until.ts";

/** How long it may take in all until it is noticed that Redis is away, on a busy machine too. */
const noticedWithinMs = 5_000;

const befalls: Record<string, (site: SiteOnRedis) => Promise<void>> = {
  killed: ({ redis }) => redis.kill(),
  frozen: ({ redis }) => redis.freeze(),
  emptied: async ({ redis }) => {
    const direct = new Redis(redis.url);
    await direct.flushall();
    direct.disconnect();
  },
};

describe.skipIf(lentOnly("redis")).each(Object.entries(befalls))("when Redis is %s, a known key", (_what, befall) => {
  const startWith = (awayMs: number): Promise<SiteOnRedis> =>
    SiteOnRedis.start({ env: { TRUNKLINE_KEYS_AWAY_MS: String(awayMs) } });

  test("goes on for the time that was set, and is not judged after that", async () => {
    const awayMs = 4_000;
    await using site = await startWith(awayMs);
    const { endpoint } = await site.knownKey();
    const knownAtMs = performance.now();
    expect((await endpoint.models()).status).toBe(200);
    await befall(site);
    const refused = await until(
      async () => {
        const told = await endpoint.models();
        return told.status !== 200 && told;
      },
      { what: "the key to be refused", timeoutMs: awayMs + noticedWithinMs, intervalMs: 50 },
    );
    // The time runs from the gateway's last word of Redis, which is a little older than this request.
    expect(performance.now() - knownAtMs).toBeGreaterThan(awayMs * 0.9);
    expect(refused).toMatchObject({ status: 503, code: "auth_unavailable" });
  });

  test("is not judged any more as soon as that is noticed, if it was set to none", async () => {
    await using site = await startWith(0);
    const { endpoint } = await site.knownKey();
    await befall(site);
    const told = await until(
      async () => {
        const models = await endpoint.models();
        return models.status !== 200 && models;
      },
      { what: "the key to be refused", timeoutMs: noticedWithinMs },
    );
    expect(told).toMatchObject({ status: 503, code: "auth_unavailable" });
    expect(await endpoint.models()).toMatchObject({ status: 503, code: "auth_unavailable" });
  });
});
