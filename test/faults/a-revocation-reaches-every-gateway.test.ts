import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EventStream } from "../harness/event-stream.ts";
import { errorIn, type ChatFields, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { until } from "../harness/until.ts";

/** From the moment at which whoever takes a key back is told that it is so. */
const cutWithinMs = 5_000;
const endless = { model: "scripted", says: "/script tokens=100000 delay_ms=20" };

describe.skipIf(lentOnly("redis"))("a key that is taken back", () => {
  let site: SiteOnRedis;
  let other: GatewayInProcess;
  let direct: Redis;
  beforeEach(async () => {
    site = await SiteOnRedis.start();
    other = await startGatewayInProcess({ redisUrl: site.redis.url });
    direct = new Redis(site.redis.url);
  });
  afterEach(async () => {
    direct.disconnect();
    await other[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  });

  /** The connections on which gateways wait to hear of changes. */
  async function listening(): Promise<string[]> {
    const clients = String(await direct.client("LIST")).split("\n");
    return clients.flatMap((line) => /^id=(\d+) .* cmd=xread /.exec(line)?.[1] ?? []);
  }
  async function breakAll(): Promise<void> {
    for (const id of await bothListening()) await direct.client("KILL", "ID", id);
  }
  function bothListening(): Promise<string[]> {
    const both = async (): Promise<string[] | false> => {
      const all = await listening();
      return all.length === 2 && all;
    };
    return until(both, { what: "both gateways to wait for changes" });
  }

  test("a key that is taken back has no stream left at any gateway, and is refused, also where nobody listened just then", async () => {
    for (let times = 0; times < 20; times += 1) {
      const { endpoint, record } = await site.knownKey();
      const endpoints = [endpoint, endpoint.at(other.baseUrl)];
      const streams = await Promise.all(endpoints.map((each) => begin(each)));
      if (times % 2 === 1) await breakAll();
      await site.operator.change(record.id, { action: "revoked" });
      await Promise.all(streams.map(expectCut));
      await Promise.all(endpoints.map(expectRefused));
    }
  });

  test.each(["there", "back"] as const)(
    "a key that is taken back is cut off where the network swallowed all that went %s",
    async (direction) => {
      const { endpoint, record } = await site.knownKey();
      const stream = await begin(endpoint);
      const before = await bothListening();
      site.network.hold(direction);
      await site.operator.change(record.id, { action: "revoked" });
      const givenUp = async (): Promise<boolean> => {
        const clients = String(await direct.client("LIST"));
        return before.some((id) => !clients.includes(`id=${id} `));
      };
      const released = until(givenUp, { what: "the gateway to give the silent connection up" }).then(() =>
        site.network.release(),
      );
      await Promise.all([expectCut(stream), released]);
      await expectRefused(endpoint);
    },
  );

  test("a key that is taken back only for a while is cut off too, and works again when it is given back", async () => {
    const { endpoint, record } = await site.knownKey();
    const endpoints = [endpoint, endpoint.at(other.baseUrl)];
    const streams = await Promise.all(endpoints.map((each) => begin(each)));
    await site.operator.change(record.id, { action: "disabled" });
    await Promise.all(streams.map(expectCut));
    await Promise.all(endpoints.map(expectRefused));
    await site.operator.change(record.id, { action: "enabled" });
    for (const each of endpoints) await expectServed(each);
  });

  test("a key that is taken back for another secret keeps its streams, and both secrets work until the grace is over", async () => {
    const { endpoint, record, token } = await site.knownKey();
    const finite = { model: "scripted", says: "/script tokens=200 delay_ms=20" };
    const endpoints = [endpoint, endpoint.at(other.baseUrl)];
    const streams = await Promise.all(endpoints.map((each) => begin(each, finite)));
    const graceMs = 3_000;
    const rotatedAtMs = Date.now();
    const next = await site.operator.rotate(record.id, graceMs);
    expect(next.id).toBe(token.id);
    const renewed = endpoint.withKey(next.reveal());
    for (const { baseUrl } of [site.gateway, other]) {
      await expectServed(renewed.at(baseUrl));
      await expectServed(endpoint.at(baseUrl));
    }
    expect(Date.now() - rotatedAtMs).toBeLessThan(graceMs);
    const over = async (): Promise<boolean> => (await endpoint.models()).status === 401;
    await until(over, { what: "the grace to be over" });
    for (const { baseUrl } of [site.gateway, other]) {
      expect(await endpoint.at(baseUrl).judged()).toMatchObject({ status: 401, code: "key_expired" });
      await expectServed(renewed.at(baseUrl));
    }
    await Promise.all(streams.map(({ over: ended }) => ended));
    expect(streams.map(({ done }) => done)).toEqual([true, true]);
  });
});

async function expectServed(endpoint: Endpoint): Promise<void> {
  expect(await endpoint.judged()).toMatchObject({ status: 200 });
}

async function expectRefused(endpoint: Endpoint): Promise<void> {
  expect(await endpoint.judged()).toMatchObject({ status: 401, code: "key_invalid" });
}

async function begin(endpoint: Endpoint, asked: ChatFields = endless): Promise<EventStream> {
  await expectServed(endpoint);
  const stream = await endpoint.stream(asked);
  await until(() => stream.text !== "", { what: "the first token" });
  return stream;
}

async function expectCut(stream: EventStream): Promise<void> {
  const events = (): string | false =>
    stream.events.at(-1)?.includes('"error"') === true && (stream.events.at(-1) ?? "");
  const last = await until(events, { what: "the stream to be cut", timeoutMs: cutWithinMs });
  expect(errorIn(last)).toMatchObject({ code: "key_invalid" });
  expect(await stream.over).toBe("closed");
}
