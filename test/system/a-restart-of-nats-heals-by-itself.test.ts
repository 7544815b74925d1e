import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errorOf, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const atOnceMs = 1_000;
const healsWithinMs = 5_000;
/** Longer than any presence is believed. */
const downMs = 4_500;

describe.skipIf(lentOnly("nats", "redis"))("when NATS is killed", () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await startFleet({
      gateways: 2,
      machines: { attic: { models: ["scripted"] }, cellar: { models: ["scripted:plain"] } },
    });
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  /** What a caller is told just now, and how long that took. */
  async function told(endpoint: Endpoint) {
    const begunMs = performance.now();
    const chat = await endpoint.chat({ model: "scripted", says: "/script tokens=1" });
    const code = chat.status === 200 ? "answered" : (await errorOf(chat)).code;
    const { status, code: listed } = await endpoint.models();
    return { chat: [chat.status, code], list: [status, listed], tookMs: performance.now() - begunMs };
  }
  const unavailable = [503, "backend_unavailable"];

  test("new requests are told at once for as long as it is down, and all heals when it is back", async () => {
    await fleet.nats.kill();
    const killedAtMs = performance.now();
    const noticed = async () =>
      (await Promise.all(fleet.endpoints.map(told))).every(({ list }) => list[1] === unavailable[1]);
    await until(noticed, { what: "every gateway to notice", timeoutMs: atOnceMs });
    while (performance.now() - killedAtMs < downMs) {
      for (const endpoint of fleet.endpoints) {
        expect(await told(endpoint)).toEqual({
          chat: unavailable,
          list: unavailable,
          tookMs: expect.toSatisfy((tookMs: number) => tookMs < atOnceMs),
        });
      }
    }
    await fleet.nats.restart();
    const healed = async () =>
      (await Promise.all(fleet.endpoints.map(told))).every(({ chat, list }) => chat[0] === 200 && list[0] === 200);
    await until(healed, { what: "chats through every gateway", timeoutMs: healsWithinMs });
    for (const { models } of fleet.endpoints.map((endpoint) => ({ models: () => endpoint.models() }))) {
      const both = async () => (await models()).ids.join() === "scripted,scripted:plain";
      await until(both, { what: "both machines in the list", timeoutMs: healsWithinMs });
    }
    for (const process of [...fleet.gateways, fleet.agent("attic"), fleet.agent("cellar")]) {
      expect([process.title, process.ended]).toEqual([process.title, false]);
    }
  });

  test("a request under way never hangs: restarted at once, its stream is whole or ends with an error", async () => {
    const stream = await fleet.endpoint.stream({ model: "scripted", says: "/script tokens=100 delay_ms=20 nonce=abc" });
    const whole = fleet.endpoint.chat({ model: "scripted", says: "/script tokens=100 delay_ms=20 nonce=abc" });
    await until(() => stream.text.includes("abc-10 "), { what: "the first tokens" });
    await fleet.nats.restart();
    expect(await stream.over).toBe("closed");
    const text = Array.from({ length: 100 }, (_, index) => `abc-${index} `).join("");
    if (stream.done) expect(stream.text).toBe(text);
    else {
      expect(text.startsWith(stream.text)).toBe(true);
      expect(stream.events.at(-1)).toContain('"error"');
    }
    const answer = await whole;
    if (answer.status === 200) expect(JSON.stringify(await answer.json())).toContain(text);
    else expect((await errorOf(answer)).code).toEqual(expect.any(String));
  });
});
