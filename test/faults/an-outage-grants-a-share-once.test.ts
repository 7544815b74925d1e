import { describe, expect, test } from "vitest";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { full, roomy, short } from "./redis-mishap.ts";

const perMinute = 60;
/** A request whose answer from Redis is late may be charged and granted by the gateway too, and never the other way. */
const tolerance = 2;

interface Outage {
  readonly befalls: (site: SiteOnRedis) => Promise<unknown>;
  readonly ends: (site: SiteOnRedis) => Promise<unknown>;
}

const outages: Readonly<Record<string, Outage>> = {
  "cannot be reached": {
    befalls: async ({ network }) => (network.refuse(true), network.cut()),
    ends: async ({ network }) => network.refuse(false),
  },
  "is full": { befalls: full, ends: roomy },
  "is frozen": { befalls: ({ redis }) => redis.freeze(), ends: ({ redis }) => redis.thaw() },
};

/** A gateway asks Redis again a second after a failure. */
const backMs = 1_300;
const refusalsInARow = 3;

/** Asks again and again until the key has nothing left, and for so long at least, and says how many were served. */
async function served(endpoints: readonly Endpoint[], forMs = 0): Promise<number> {
  const endMs = performance.now() + forMs;
  let [count, refused] = [0, 0];
  while (refused < refusalsInARow || performance.now() < endMs) {
    const responses = await Promise.all(endpoints.map((endpoint) => endpoint.chat(short)));
    const ok = responses.filter(({ status }) => status === 200).length;
    await Promise.all(responses.map((response) => response.text()));
    count += ok;
    refused = ok === 0 ? refused + 1 : 0;
  }
  return count;
}

describe.skipIf(lentOnly("redis"))("a key of 60 requests a minute", () => {
  test.each(Object.keys(outages))(
    "a key of 60 requests a minute gets no more than 60 and one a second while Redis %s again and again",
    async (how) => {
      const { befalls, ends } = outages[how] as Outage;
      await using site = await SiteOnRedis.start();
      const { endpoint } = await site.knownKey({ limits: { requestsPerMinute: perMinute } });
      const startedAtMs = performance.now();
      let count = 0;
      for (let times = 0; times < 2; times += 1) {
        await befalls(site);
        count += await served([endpoint]);
        await ends(site);
        count += await served([endpoint], backMs);
      }
      const seconds = (performance.now() - startedAtMs) / 1_000;
      expect(count).toBeGreaterThanOrEqual(perMinute);
      expect(count).toBeLessThanOrEqual(perMinute + seconds + tolerance);
    },
  );

  test("a key of 60 requests a minute gets no more of two gateways than both their shares, however often Redis goes", async () => {
    await using site = await SiteOnRedis.start();
    await using other = await startGatewayInProcess({ redisUrl: `redis://127.0.0.1:${site.network.port}` });
    const { befalls, ends } = outages["cannot be reached"] as Outage;
    const { endpoint } = await site.knownKey({ limits: { requestsPerMinute: perMinute } });
    const elsewhere = endpoint.at(other.baseUrl);
    // Both gateways know the key before the outage, or only one of them would grant anything in it.
    await elsewhere.judged();
    await Promise.all([endpoint.answer(short), elsewhere.answer(short)]);
    // With the books of this a gateway hears how many gateways there are.
    const { endpoint: unlimited, record } = await site.knownKey();
    await unlimited.at(other.baseUrl).judged();
    await Promise.all([unlimited.answer(short), unlimited.at(other.baseUrl).answer(short)]);
    await site.operator.booked(record.id, ({ requests }) => requests === 2);
    const startedAtMs = performance.now();
    let count = 2;
    for (let times = 0; times < 4; times += 1) {
      await befalls(site);
      count += await served([endpoint, elsewhere]);
      await ends(site);
      count += await served([endpoint, elsewhere], backMs);
    }
    const seconds = (performance.now() - startedAtMs) / 1_000;
    expect(count).toBeLessThanOrEqual(perMinute + seconds + 2 * tolerance);
  });
});
