import { describe, expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { newMachineKeyPair, parseJoinLine } from "#shared/protocol/pairing.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Load } from "../harness/load/load.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import { pairAt } from "../harness/pair-over-http.ts";
import { RawTunnel } from "../harness/raw-tunnel.ts";
import { until } from "../harness/until.ts";

const machines = 200;
const streams = 200;

describe.skipIf(lentOnly("nats", "redis"))("a site with NATS, two gateways and three machines", () => {
  test(`pairs, renames and revokes ${machines} machines, and none of ${streams} running streams is touched`, async () => {
    await using site = await OperatorSite.start();
    await Promise.all([
      site.startMachine("attic"),
      site.startMachine("cellar", { origin: site.originOf(1) }),
      site.startMachine("desk", { origin: site.originOf(1) }),
    ]);
    await site.untilListed("scripted");
    const loads = site.gateways.map(({ baseUrl }) => {
      const pace = { atOnce: streams / 2 };
      return new Load({ baseUrl, key: site.key, wish: () => ({ tokens: 100, delayMs: 50 }), pace });
    });
    const all = (count: "begun" | "sent"): number => loads.reduce((sum, { ledger }) => sum + ledger[count], 0);
    await until(() => all("begun") >= streams, { what: "all streams to begin", timeoutMs: 20_000 });

    const means = { ...site.operator.store, clock, actor: { by: "the operator" } };
    const startedAtMs = performance.now();
    await using tunnels = new AsyncDisposableStack();
    for (let index = 0; index < machines; index += 1) {
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
    const ledgers = await Promise.all(loads.map((load) => load.end()));
    for (const ledger of ledgers) {
      console.log(ledger.summary(`${machines} machines in ${Math.round(pairedMs)} ms`));
      expect([ledger.told, ledger.of("exact")]).toEqual([{}, ledger.sent]);
    }
    expect(all("sent")).toBeGreaterThan(streams);
  }, 120_000);
});
