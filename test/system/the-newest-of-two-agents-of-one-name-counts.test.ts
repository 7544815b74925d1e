import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorIn, type Endpoint, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { scriptedText } from "../faults/scripted-request.ts";

const endsWithinMs = 5_000;
/** A list is promised within 1 s; the rest is what a busy machine adds. */
const listsWithinMs = 1_500;
const tokens = 150;
/** What systemd is told not to start again: settings that are wrong. */
const misconfigured = 78;
const endless = "/script tokens=100000 delay_ms=20 nonce=abc";

describe.skipIf(lentOnly("nats", "redis"))("of two agents of one name", () => {
  let fleet: Fleet;
  let endpoint: Endpoint;
  beforeAll(async () => {
    fleet = await startFleet({ machines: { attic: { models: ["scripted"] }, cellar: { models: ["scripted:plain"] } } });
    ({ endpoint } = fleet);
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  test("the older stops with a reason and finishes what it has, and the newer serves", async () => {
    const older = fleet.agent("attic");
    const stream = await endpoint.stream({ model: "scripted", says: `/script tokens=${tokens} delay_ms=20 nonce=abc` });
    const newer = await fleet.startAgent("attic");
    expect(await older.exit()).toBe(misconfigured);
    expect(await older.stderr()).toContain("Another agent has started as 'attic'");
    expect(await older.stderr()).toContain("TRUNKLINE_MACHINE");
    expect(await stream.over).toBe("closed");
    expect([stream.done, stream.text]).toEqual([true, scriptedText("abc", tokens)]);
    expect(await endpoint.answer({ model: "scripted", says: "/script tokens=1" })).toBe("token-0 ");
    expect(newer.ended).toBe(false);
  });

  test("one that slept while the other started stops as soon as it wakes", async () => {
    const older = fleet.agent("attic");
    await older.freeze();
    await fleet.startAgent("attic");
    const served = async () => (await endpoint.chat({ model: "scripted", says: "/script tokens=1" })).ok;
    await until(served, { what: "the newer one to serve", timeoutMs: 10_000 });
    await older.thaw();
    expect(await older.exit()).toBe(misconfigured);
  });

  test("when a machine freezes, streams, whole answers and new requests all end with an error, and the list names the machine", async () => {
    const whole = endpoint.chat({ model: "scripted", says: endless });
    const stream = await endpoint.stream({ model: "scripted", says: endless });
    // Callers that come together share one look at the machines, so the next look must be one that finds it frozen.
    await until(() => stream.text.includes("abc-30 "), { what: "both answers to be under way for a while" });

    await fleet.agent("attic").freeze();
    const frozenAtMs = performance.now();
    const sinceMs = (): number => performance.now() - frozenAtMs;
    const late = endpoint.chat({ model: "scripted", says: "Hello" });

    const listing = await endpoint.models();
    expect(sinceMs()).toBeLessThan(listsWithinMs);
    expect(listing).toEqual({ status: 200, ids: ["scripted:plain"], code: undefined, unanswered: "attic" });

    expect(await stream.over).toBe("closed");
    expect(sinceMs()).toBeLessThan(endsWithinMs);
    expect(errorIn(stream.events.at(-1) ?? "")).toMatchObject({ code: "agent_disconnected" });
    expect(stream.events).not.toContain("[DONE]");

    const answer = await whole;
    expect(sinceMs()).toBeLessThan(endsWithinMs);
    expect(await refusalOf(answer)).toMatchObject({ status: 502, code: "agent_disconnected" });

    const refused = await late;
    expect(sinceMs()).toBeLessThan(endsWithinMs);
    expect(await refusalOf(refused)).toMatchObject({ status: 503, code: "agent_offline" });
    expect(await endpoint.answer({ model: "scripted:plain", says: "/script tokens=1" })).toBe("token-0 ");
  });
});
