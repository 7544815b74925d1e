import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { findCaddy, type Proxy, startProxy } from "../harness/infra/start-proxy.ts";
import { Load } from "../harness/load/load.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import type { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

const streams = 200;
const caddy = await findCaddy();
const skipped = "reason" in caddy ? caddy.reason : undefined;
if (skipped !== undefined) console.log(`Skipping a rolling restart behind infra/proxy/Caddyfile: ${skipped}.`);

describe.skipIf(skipped !== undefined || lentOnly("nats", "redis"))("two gateways behind the proxy of infra/", () => {
  let site: OperatorSite;
  let proxy: Proxy;
  let machines: readonly TrunklineProcess[];
  beforeAll(async () => {
    site = await OperatorSite.start({ gatewayEnv: { TRUNKLINE_TRUSTED_PROXIES: "127.0.0.1" } });
    proxy = await startProxy("binary" in caddy ? caddy.binary : "", site.gateways);
    const names = ["attic", "cellar", "desk"];
    machines = await Promise.all(names.map((name) => site.startMachine(name, { origin: proxy.url })));
    await site.untilListed("scripted");
  });
  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
  });

  const startLoad = (count?: number): Load => {
    const asked = { wish: () => ({ tokens: 60, delayMs: 50 }), pace: { atOnce: streams }, ...(count && { count }) };
    return new Load({ baseUrl: `${proxy.url}/v1`, key: site.key, ...asked });
  };
  const untilBegun = ({ ledger }: Load): Promise<true> =>
    until(() => ledger.begun >= streams, { what: "all streams to begin", timeoutMs: 20_000 });
  const lostConnections = async (): Promise<number> => {
    const logs = await Promise.all(machines.map((machine) => machine.logLines()));
    return logs.flat().filter(({ msg }) => msg.includes("is lost")).length;
  };

  test(`a reload of the proxy cuts neither a tunnel nor one of ${streams} streams`, async () => {
    const load = startLoad(streams);
    await untilBegun(load);
    await proxy.reload();
    const ledger = await load.over;
    expect([ledger.told, ledger.of("exact"), await lostConnections()]).toEqual([{}, streams, 0]);
  }, 60_000);

  test(`a restart of each gateway moves its tunnels, and leaves all of ${streams} streams whole`, async () => {
    const load = startLoad();
    const { ledger } = load;
    await untilBegun(load);
    const settleMore = async (count: number): Promise<void> => {
      const target = ledger.settled + count;
      await until(() => ledger.settled >= target, { what: `${count} more streams to end`, timeoutMs: 30_000 });
    };
    for (const place of [0, 1]) {
      expect(await site.gateways[place]?.terminate()).toBe(0);
      await settleMore(streams / 2);
      await site.restartGateway(place);
      await settleMore(streams);
    }
    await load.end();
    console.log(ledger.summary("a rolling restart behind Caddy"));
    expect([ledger.told, ledger.of("exact")]).toEqual([{}, ledger.sent]);
    expect(await lostConnections()).toBeGreaterThanOrEqual(machines.length);
  }, 120_000);
});
