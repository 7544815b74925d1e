import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { until } from "../harness/until.ts";
import { full, redisMishap, roomy } from "./redis-mishap.ts";

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
