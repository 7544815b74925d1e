import { describe, expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Load } from "../harness/load/load.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import { until } from "../harness/until.ts";

const requests = 1_000;

describe.skipIf(lentOnly("nats", "redis")).each([[["attic"]], [["attic", "cellar", "desk"]]])(
  "a site of two gateways and the machines %j",
  (machines) => {
    test("answers every request while one of them is renamed, and finishes a stream that began before", async () => {
      await using site = await OperatorSite.start();
      for (const [place, machine] of machines.entries()) {
        await site.startMachine(machine, { origin: site.originOf(place % 2) });
      }
      await site.untilListed("scripted");
      const endpoints = site.gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key: site.key }));
      const long = await Promise.all(
        endpoints.map((endpoint) => endpoint.stream({ model: "scripted", says: "/script tokens=300 delay_ms=20" })),
      );
      const loads = site.gateways.map(
        ({ baseUrl }) =>
          new Load({ baseUrl, key: site.key, wish: () => ({ tokens: 5, delayMs: 10 }), pace: { atOnce: 8 } }),
      );
      const sent = (): number => loads.reduce((sum, { ledger }) => sum + ledger.sent, 0);
      await until(() => sent() > 50, { what: "requests to run" });
      const means = { ...site.operator.store, clock, actor: { by: "the operator" } };
      await changeMachine("attic", { action: "machine_renamed", name: "loft" }, means);
      // Without such a key a gateway may find another machine cheaper all the time.
      const ofLoft = (await site.operator.issue({ machines: ["loft"] })).token.reveal();
      for (const endpoint of endpoints) {
        const isServed = async (): Promise<boolean> =>
          (await endpoint.withKey(ofLoft).chat({ model: "scripted", says: "hi" })).status === 200;
        await until(isServed, { what: "an answer under the new name", timeoutMs: 20_000 });
      }
      await until(() => sent() > requests, { what: "all requests to run", timeoutMs: 40_000 });
      const ledgers = await Promise.all(loads.map((load) => load.end()));
      for (const ledger of ledgers) expect([ledger.told, ledger.of("exact")]).toEqual([{}, ledger.sent]);
      for (const stream of long) {
        await stream.over;
        expect(stream.events.at(-1)).toBe("[DONE]");
      }
    }, 120_000);
  },
);
