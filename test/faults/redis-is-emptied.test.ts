import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { until } from "../harness/until.ts";
import { healsWithinMs, redisMishap, statuses } from "./redis-mishap.ts";

interface Kept {
  readonly name: string;
  readonly dump: Buffer;
}

const copies = new WeakMap<SiteOnRedis, readonly Kept[]>();

redisMishap("while Redis has lost all it held, until that is given back", {
  befalls: async (site) => void copies.set(site, await withRedis(site, empty)),
  ends: (site) => withRedis(site, (redis) => giveBack(redis, copies.get(site) ?? [])),
  limits: "begin anew",
});

describe.skipIf(lentOnly("redis"))("a Redis that lost all it held", () => {
  test("a Redis that lost all it held begins anew with the next key that is issued, and only then the old ones are invalid", async () => {
    await using site = await SiteOnRedis.start();
    const [known, unknown] = [await site.knownKey(), await site.unknownKey()];
    await site.untilAllIsHeard();
    await withRedis(site, empty);
    expect(await unknown.endpoint.models()).toMatchObject({ status: 503, code: "auth_unavailable" });
    const { endpoint } = await site.unknownKey();
    for (const old of [known, unknown]) {
      const refused = async (): Promise<boolean> => (await old.endpoint.models()).status === 401;
      await until(refused, { what: "the old key to be refused", timeoutMs: healsWithinMs });
      expect(await old.endpoint.judged()).toMatchObject({ status: 401, code: "key_invalid" });
    }
    expect((await endpoint.judged()).status).toBe(200);
    expect(await statuses(endpoint, 2)).toEqual([200, 200]);
  });
});

async function empty(redis: Redis): Promise<readonly Kept[]> {
  const names = await redis.keys("*");
  const copy = names.map(async (name) => ({ name, dump: await redis.dumpBuffer(name) }));
  const kept = await Promise.all(copy);
  await redis.flushall();
  return kept;
}

/** What was written since stays. */
async function giveBack(redis: Redis, copy: readonly Kept[]): Promise<void> {
  for (const { name, dump } of copy) {
    if ((await redis.exists(name)) === 0) await redis.restore(name, 0, dump);
  }
}

async function withRedis<Result>(site: SiteOnRedis, act: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(site.redis.url);
  try {
    return await act(redis);
  } finally {
    redis.disconnect();
  }
}
