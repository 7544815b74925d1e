import { describe, expect, test } from "vitest";
import { errorIn } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const says = "/script tokens=300 delay_ms=20 nonce=abc";
const text = Array.from({ length: 300 }, (_, index) => `abc-${index} `).join("");

describe.skipIf(lentOnly("nats", "redis"))("a gateway that stood still", () => {
  /** A stream whose gateway stands still for so long in the middle of it. The time itself is what is tested. */
  async function streamThroughAPause(stoodStillMs: number) {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const [gateway] = fleet.gateways;
    const stream = await fleet.endpoint.stream({ model: "scripted", says });
    await until(() => stream.text.includes("abc-10 "), { what: "the stream to be under way" });
    await gateway?.freeze();
    const frozenAtMs = performance.now();
    await until(() => performance.now() - frozenAtMs > stoodStillMs, { what: "the pause", timeoutMs: 10_000 });
    await gateway?.thaw();
    const thawedAtMs = performance.now();
    expect(await stream.over).toBe("closed");
    return { stream, afterMs: performance.now() - thawedAtMs };
  }

  test("goes on with its streams, whole, since it was nobody else that was silent", async () => {
    const { stream } = await streamThroughAPause(1_900);
    expect(stream.done).toBe(true);
    expect(stream.text).toBe(text);
  });

  test("for so long that its machines took it for dead tells its clients at once, and nothing of the answer is wrong", async () => {
    const { stream, afterMs } = await streamThroughAPause(4_500);
    expect(stream.done).toBe(false);
    expect(text.startsWith(stream.text)).toBe(true);
    expect(errorIn(stream.events.at(-1) ?? "")).toMatchObject({ code: "agent_disconnected" });
    expect(afterMs).toBeLessThan(1_500);
  });
});
