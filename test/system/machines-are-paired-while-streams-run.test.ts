import { describe, expect, onTestFinished, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { newMachineKeyPair, parseJoinLine } from "#shared/protocol/pairing.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Load } from "../harness/load/load.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import { pairAt } from "../harness/pair-over-http.ts";
import { RawTunnel } from "../harness/raw-tunnel.ts";
import { until } from "../harness/until.ts";

const paired = 200;
const streams = 200;
const requests = 1_000;

describe.skipIf(lentOnly("nats", "redis"))("a site with NATS, two gateways and some machines", () => {
  async function startSite(machines: readonly string[]) {
    const site = await OperatorSite.start();
    onTestFinished(() => site[Symbol.asyncDispose]());
    for (const [place, machine] of machines.entries()) {
      await site.startMachine(machine, { origin: site.originOf(place % 2) });
    }
    await site.untilListed("scripted");
    const means = { ...site.operator.store, clock, actor: { by: "the operator" } };
    return { site, means, endpoints: site.gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key: site.key })) };
  }

  /** One load on each gateway, which tells at its end that every answer was exact. */
  function startLoads(site: OperatorSite, script: { tokens: number; delayMs: number }, atOnce: number) {
    const loads = site.gateways.map(
      ({ baseUrl }) => new Load({ baseUrl, key: site.key, wish: () => script, pace: { atOnce } }),
    );
    return {
      count: (what: "begun" | "sent"): number => loads.reduce((sum, { ledger }) => sum + ledger[what], 0),
      async expectExact(told: string): Promise<void> {
        for (const ledger of await Promise.all(loads.map((load) => load.end()))) {
          console.log(ledger.summary(told));
          expect([ledger.told, ledger.of("exact")]).toEqual([{}, ledger.sent]);
        }
      },
    };
  }

  test(`a site pairs, renames and revokes ${paired} machines, and none of ${streams} running streams is touched`, async () => {
    const { site, means } = await startSite(["attic", "cellar", "desk"]);
    const loads = startLoads(site, { tokens: 100, delayMs: 50 }, streams / 2);
    await until(() => loads.count("begun") >= streams, { what: "all streams to begin", timeoutMs: 20_000 });

    const startedAtMs = performance.now();
    await using tunnels = new AsyncDisposableStack();
    for (let index = 0; index < paired; index += 1) {
      const name = `paired-${index}`;
      const place = index % 2;
      const keyPair = newMachineKeyPair();
      const line = parseJoinLine(await site.joinLine(name, site.originOf(place)));
      if (line === undefined) throw new Error("the line is none");
      // As an agent does: a store that is slow for a moment is asked again.
      await until(async () => (await pairAt(line.origin, line, keyPair)).status === 200, {
        what: `${name} to be paired`,
      });
      const tunnel = tunnels.use(await (await RawTunnel.open(line.origin)).prove(keyPair));
      expect(tunnel.closed).toBe(false);
      if (index % 4 === 1) await changeMachine(name, { action: "machine_renamed", name: `renamed-${index}` }, means);
      if (index % 4 !== 2) continue;
      await changeMachine(name, { action: "machine_revoked" }, means);
      await tunnel.untilClosed();
    }
    const pairedMs = performance.now() - startedAtMs;
    await loads.expectExact(`${paired} machines in ${Math.round(pairedMs)} ms`);
    expect(loads.count("sent")).toBeGreaterThan(streams);
  }, 120_000);

  test.each([[["attic"]], [["attic", "cellar", "desk"]]])(
    "a site of the machines %j answers every request while one is renamed, and finishes a stream that began before",
    async (machines) => {
      const { site, means, endpoints } = await startSite(machines);
      const long = await Promise.all(
        endpoints.map((endpoint) => endpoint.stream({ model: "scripted", says: "/script tokens=300 delay_ms=20" })),
      );
      const loads = startLoads(site, { tokens: 5, delayMs: 10 }, 8);
      await until(() => loads.count("sent") > 50, { what: "requests to run" });
      await changeMachine("attic", { action: "machine_renamed", name: "loft" }, means);
      // Without such a key a gateway may find another machine cheaper all the time.
      const ofLoft = (await site.operator.issue({ machines: ["loft"] })).token.reveal();
      for (const endpoint of endpoints) {
        const isServed = async (): Promise<boolean> =>
          (await endpoint.withKey(ofLoft).chat({ model: "scripted", says: "hi" })).status === 200;
        await until(isServed, { what: "an answer under the new name", timeoutMs: 20_000 });
      }
      await until(() => loads.count("sent") > requests, { what: "all requests to run", timeoutMs: 40_000 });
      await loads.expectExact("a rename");
      for (const stream of long) {
        await stream.over;
        expect(stream.events.at(-1)).toBe("[DONE]");
      }
    },
    120_000,
  );
});
