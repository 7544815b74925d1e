import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { until } from "../harness/until.ts";
import { redisMishap } from "./redis-mishap.ts";

/** Reads are answered as ever, and whatever would take memory is refused. */
const full = (site: SiteOnRedis): Promise<void> => setMemory(site, "1");
const roomy = (site: SiteOnRedis): Promise<void> => setMemory(site, "0");

redisMishap("while Redis is out of memory", { befalls: full, ends: roomy, unknownKeys: "are checked" });

test.skipIf(lentOnly("redis"))("a key is taken back also while Redis is out of memory", async () => {
  await using site = await SiteOnRedis.start();
  const { endpoint, record } = await site.knownKey();
  const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=1000 delay_ms=20" });
  await full(site);
  await site.operator.change(record.id, { action: "revoked" });
  await stream.over;
  expect(stream.events.at(-1)).toContain("key_invalid");
  const refused = async (): Promise<boolean> => (await endpoint.models()).status === 401;
  await until(refused, { what: "the key to be refused" });
});

async function setMemory({ operator }: SiteOnRedis, bytesMax: string): Promise<void> {
  const { state } = operator.store;
  if (state.kind !== "redis") throw new Error("there is no Redis to fill");
  await state.redis.run("fill it", (redis) => redis.config("SET", "maxmemory", bytesMax));
}
