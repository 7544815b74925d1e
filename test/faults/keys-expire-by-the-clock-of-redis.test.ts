import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keysCommand } from "../../services/cli/commands/keys.ts";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { commandHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

const hourMs = 3_600_000;
const hostAheadBy = (aheadMs: number): Clock => ({ ...systemClock, wall: () => Date.now() + aheadMs });

interface Readyz {
  readonly status: number;
  readonly reasons: readonly string[];
}

async function readyzOf({ operationsUrl }: GatewayInProcess): Promise<Readyz> {
  const response = await fetch(`${operationsUrl}/readyz`);
  return { status: response.status, ...((await response.json()) as { reasons: string[] }) };
}

/** Other reasons may stand beside them: a Redis on a busy machine may not answer in time. */
function clockReasons({ reasons }: Readyz): string[] {
  return reasons.filter((reason) => /^the clock of this host is \d+ s (ahead of|behind) that of Redis/.test(reason));
}

describe.skipIf(lentOnly("redis")).each([
  ["an hour ahead", hourMs],
  ["an hour behind", -hourMs],
])("on a host whose clock is %s", (title, aheadMs) => {
  let redis: OwnServer;
  let operator: Operator;
  let gateway: GatewayInProcess;
  const clock = hostAheadBy(aheadMs);
  const parts = new AsyncDisposableStack();
  beforeAll(async () => {
    redis = parts.use(await startRedisServer());
    operator = parts.use(await Operator.on({ redisUrl: redis.url }));
    await operator.issue();
    gateway = parts.use(await startGatewayInProcess({ redisUrl: redis.url, clock, logLevel: "info" }));
  });
  afterAll(() => parts.disposeAsync());

  const holderOf = async (ttlMs: number): Promise<Endpoint> => {
    const { token } = await operator.issue({ ttlMs });
    return new Endpoint({ baseUrl: gateway.baseUrl, key: token.reveal() });
  };
  const adminAsks = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const { token } = await operator.issue({ kind: "admin" });
    const admin = new Endpoint({ baseUrl: `${gateway.operationsUrl}/admin/v1`, key: token.reveal() });
    return Object(await (await admin.post(path, body)).json());
  };

  test("a gateway serves a key until it expires by the clock of Redis, and not longer", async () => {
    const [lasting, short] = [await holderOf(hourMs / 2), await holderOf(3_000)];
    expect((await lasting.judged()).status).toBe(200);
    expect((await short.judged()).status).toBe(200);
    const over = async (): Promise<boolean> => (await short.models()).code === "key_expired";
    await until(over, { what: "the short key to expire" });
    expect((await lasting.judged()).status).toBe(200);
  });

  test("a key that is issued there has its time by the clock of Redis", async () => {
    const { expires_at: expiresAt } = await adminAsks("/keys", { name: "a", ttl: "10m" });
    expect(Math.abs(Date.parse(String(expiresAt)) - Date.now() - 600_000)).toBeLessThan(60_000);

    const environment = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
    const said = await commandHere(keysCommand, ["issue", "--name", "a", "--ttl", "10m"], { environment, clock });
    expect(said.out).toContain("(in 10 min");
    expect(said.err).toMatch(new RegExp(`clock of this host is 36\\d\\d s ${title.replace("an hour ", "")}`));
  });

  test("the gateway says so in its log, at /readyz and in a metric, and stays ready", async () => {
    const told = async (): Promise<Readyz | false> => {
      const readyz = await readyzOf(gateway);
      return clockReasons(readyz).length === 1 && readyz;
    };
    expect(await until(told, { what: "the gateway to report the clock" })).toMatchObject({ status: 200, ready: true });
    expect(gateway.logged.filter((line) => line.includes("the clock of this host is"))).toHaveLength(1);
    const skew = (await MetricsText.scrape(gateway.operationsUrl)).value("trunkline_clock_skew_seconds");
    expect(Math.abs(skew - aheadMs / 1_000)).toBeLessThan(60);
  });
});

test.skipIf(lentOnly("redis"))(
  "a host whose clock is set while a gateway runs makes no key expire, and it is told",
  async () => {
    await using redis = await startRedisServer();
    await using operator = await Operator.on({ redisUrl: redis.url });
    const { token } = await operator.issue({ ttlMs: hourMs / 2 });
    let aheadMs = 0;
    const clock = { ...systemClock, wall: () => Date.now() + aheadMs };
    await using gateway = await startGatewayInProcess({ redisUrl: redis.url, clock, logLevel: "info" });
    const endpoint = new Endpoint({ baseUrl: gateway.baseUrl, key: token.reveal() });
    const toldOfClock = (times: number): Promise<true> =>
      until(async () => clockReasons(await readyzOf(gateway)).length === times, {
        what: `the gateway to report the clock ${times === 0 ? "no more" : "once"}`,
      });
    expect((await endpoint.judged()).status).toBe(200);
    await toldOfClock(0);
    aheadMs = hourMs;
    expect((await endpoint.judged()).status).toBe(200);
    await toldOfClock(1);
    aheadMs = 0;
    await toldOfClock(0);
    expect(gateway.logged.join("")).toContain("as they should be");
  },
);
