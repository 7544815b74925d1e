import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { issueKey } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const atOnceMs = 1_000;
const healsWithinMs = 5_000;

test.skipIf(lentOnly("nats", "redis"))(
  "while Redis is frozen known keys go on, others are not judged, balancers stay, and its return heals all",
  async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const { endpoint, redis, keyStore } = fleet;
    const { key } = await issueKey(keyStore);
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=100 delay_ms=20" });
    await until(() => stream.text !== "", { what: "the first token" });
    await redis.freeze();
    const frozenAtMs = performance.now();
    expect(await endpoint.answer({ model: "scripted", says: "/script tokens=1" })).toBe("token-0 ");
    expect(await endpoint.withKey(key).models()).toMatchObject({ status: 503, code: "auth_unavailable" });
    expect(performance.now() - frozenAtMs).toBeLessThan(atOnceMs);
    const [gateway] = fleet.gateways;
    expect((await fetch(`${gateway?.operationsUrl}/readyz`)).status).toBe(200);
    await redis.thaw();
    const healed = async () => (await endpoint.withKey(key).models()).status === 200;
    await until(healed, { what: "Redis to be used again", timeoutMs: healsWithinMs });
    await stream.over;
    expect(stream.done).toBe(true);
  },
);
