import { describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const tokens = 150;
const says = `/script tokens=${tokens} delay_ms=20 nonce=abc`;
const text = Array.from({ length: tokens }, (_, index) => `abc-${index} `).join("");
/** What systemd is told not to start again: settings that are wrong. */
const misconfigured = 78;

describe.skipIf(lentOnly("nats", "redis"))("of two agents of one name", () => {
  test("the older stops with a reason and finishes what it has, and the newer serves", async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const older = fleet.agent("attic");
    const stream = await fleet.endpoint.stream({ model: "scripted", says });
    const newer = await fleet.startAgent("attic", { models: ["scripted"] });
    expect(await older.exit()).toBe(misconfigured);
    expect(await older.stderr()).toContain("Another agent has started as 'attic'");
    expect(await older.stderr()).toContain("TRUNKLINE_MACHINE");
    expect(await stream.over).toBe("closed");
    expect([stream.done, stream.text]).toEqual([true, text]);
    expect(await fleet.endpoint.answer({ model: "scripted", says: "/script tokens=1" })).toBe("token-0 ");
    expect(newer.ended).toBe(false);
  });

  test("one that slept while the other started stops as soon as it wakes", async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const older = fleet.agent("attic");
    await older.freeze();
    await fleet.startAgent("attic", { models: ["scripted"] });
    const served = async () => (await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" })).ok;
    await until(served, { what: "the newer one to serve", timeoutMs: 10_000 });
    await older.thaw();
    expect(await older.exit()).toBe(misconfigured);
  });
});
