import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const atOnceMs = 1_000;
const healsWithinMs = 5_000;

test.skipIf(lentOnly("nats", "redis"))(
  "without Redis no key is judged, streams go on, and its return heals all",
  async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const { endpoint, redis } = fleet;
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=100 delay_ms=20" });
    await until(() => stream.text !== "", { what: "the first token" });
    const { port } = redis;
    await redis.freeze();
    const frozenAtMs = performance.now();
    expect(await endpoint.models()).toMatchObject({ status: 503, code: "backend_unavailable" });
    expect(performance.now() - frozenAtMs).toBeLessThan(atOnceMs);
    const [gateway] = fleet.gateways;
    expect((await fetch(`${gateway?.operationsUrl}/readyz`)).status).toBe(503);
    expect((await fetch(`${gateway?.operationsUrl}/healthz`)).status).toBe(200);
    await redis.thaw();
    const healed = async () => (await endpoint.models()).status === 200;
    await until(healed, { what: `Redis on port ${port} to be used again`, timeoutMs: healsWithinMs });
    await stream.over;
    expect(stream.done).toBe(true);
  },
);
