import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errorIn, errorOf, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const endsWithinMs = 5_000;
/** A list is promised within 1 s; the rest is what a busy machine adds. */
const listsWithinMs = 1_500;
const endless = "/script tokens=100000 delay_ms=20 nonce=abc";

describe.skipIf(lentOnly("nats", "redis"))("when a machine freezes", () => {
  let fleet: Fleet;
  let endpoint: Endpoint;
  beforeEach(async () => {
    fleet = await startFleet({ machines: { attic: { models: ["scripted"] }, cellar: { models: ["scripted:plain"] } } });
    ({ endpoint } = fleet);
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  test("streams, whole answers and new requests all end with an error, and the list names the machine", async () => {
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
    expect([answer.status, (await errorOf(answer)).code]).toEqual([502, "agent_disconnected"]);

    const refused = await late;
    expect(sinceMs()).toBeLessThan(endsWithinMs);
    expect([refused.status, (await errorOf(refused)).code]).toEqual([503, "agent_offline"]);
    expect(await endpoint.answer({ model: "scripted:plain", says: "/script tokens=1" })).toBe("token-0 ");
  });
});
