import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { until } from "../harness/until.ts";
import { healsWithinMs, redisMishap, short } from "./redis-mishap.ts";

/** There and back, which is more than any command is waited for. */
const slowMs = 300;
const slow = ({ network }: SiteOnRedis): void => void (network.latencyMs = slowMs / 2);

redisMishap(`while Redis takes ${slowMs} ms to answer`, {
  befalls: async (site) => slow(site),
  ends: async ({ network }) => void (network.latencyMs = 0),
});

test.skipIf(lentOnly("redis"))("a known key without limits does not wait for a slow Redis at all", async () => {
  await using site = await SiteOnRedis.start();
  const { endpoint } = await site.knownKey();
  slow(site);
  const answers = 20;
  const startedAtMs = performance.now();
  for (let times = 0; times < answers; times += 1) expect(await endpoint.answer(short)).toBe("token-0 ");
  expect(performance.now() - startedAtMs).toBeLessThan((answers / 4) * slowMs);
});

test.skipIf(lentOnly("redis"))(
  "a seat that a slow Redis gave too late is not taken, also when it has never seen the script before",
  async () => {
    await using site = await SiteOnRedis.start();
    const { endpoint } = await site.knownKey({ limits: { concurrency: 1 } });
    slow(site);
    expect(await endpoint.answer(short)).toBe("token-0 ");
    site.network.latencyMs = 0;
    await using other = await startGatewayInProcess({ redisUrl: site.redis.url });
    await endpoint.at(other.baseUrl).judged();
    const free = async (): Promise<boolean> => (await endpoint.at(other.baseUrl).chat(short)).status === 200;
    await until(free, { what: "the seat to be free", timeoutMs: healsWithinMs });
  },
);
