import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import type { Endpoint, ModelsTold } from "../harness/endpoint.ts";
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

  async function untilRefused(endpoint: Endpoint, withinMs: number): Promise<void> {
    const refused = async (): Promise<ModelsTold | false> => {
      const told = await endpoint.models();
      return told.status !== 200 && told;
    };
    const told = await until(refused, { what: "the key to be refused", timeoutMs: withinMs, intervalMs: 50 });
    expect(told).toMatchObject({ status: 503, code: "auth_unavailable" });
  }

  test("goes on for the time that was set, and is not judged after that", async () => {
    const awayMs = 4_000;
    await using site = await startWith(awayMs);
    const { endpoint } = await site.knownKey();
    const knownAtMs = performance.now();
    expect((await endpoint.models()).status).toBe(200);
    await befall(site);
    await untilRefused(endpoint, awayMs + noticedWithinMs);
    // The time runs from the gateway's last word of Redis, which is a little older than this request.
    expect(performance.now() - knownAtMs).toBeGreaterThan(awayMs * 0.9);
  });

  test("is not judged any more as soon as that is noticed, if it was set to none", async () => {
    await using site = await startWith(0);
    const { endpoint } = await site.knownKey();
    await befall(site);
    await untilRefused(endpoint, noticedWithinMs);
    expect(await endpoint.models()).toMatchObject({ status: 503, code: "auth_unavailable" });
  });
});
