import { describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

/** Longer than a machine may be silent. The time itself is what is tested, so it has to pass. */
const stoodStillMs = 3_500;

describe.skipIf(lentOnly("nats", "redis"))("a gateway that stood still", () => {
  test("goes on with its streams, whole, since it was nobody else that was silent", async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const [gateway] = fleet.gateways;
    const says = "/script tokens=300 delay_ms=20 nonce=abc";
    const stream = await fleet.endpoint.stream({ model: "scripted", says });
    await until(() => stream.text.includes("abc-10 "), { what: "the stream to be under way" });
    await gateway?.freeze();
    const frozenAtMs = performance.now();
    await until(() => performance.now() - frozenAtMs > stoodStillMs, { what: "the pause", timeoutMs: 10_000 });
    await gateway?.thaw();
    expect(await stream.over).toBe("closed");
    expect(stream.done).toBe(true);
    expect(stream.text).toBe(Array.from({ length: 300 }, (_, index) => `abc-${index} `).join(""));
  });
});
