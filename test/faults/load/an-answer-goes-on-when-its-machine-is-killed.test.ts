import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { MetricsText } from "../../harness/metrics-text.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const kills = sized({ fast: 2, whole: 25 });
const streams = 40;
const machines = { attic: ["scripted"], cellar: ["scripted"] };

describe.skipIf(lentOnly("nats", "redis"))("two machines with the same model", () => {
  test(
    `killed in turn, ${kills} times, leave each of ${streams} streams whole to the last character`,
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 2, machines });
      let continued = 0;
      for (let kill = 0; kill < kills; kill += 1) {
        const victim = kill % 2 === 0 ? "attic" : "cellar";
        await fleet.untilProved();
        const load = fleet.load({
          wish: (index) => ({ tokens: 150 + ((index * 37) % 200), delayMs: 5 + (index % 10) }),
          pace: { atOnce: streams },
          count: streams,
        });
        await until(() => load.ledger.begun === streams, { what: "all streams to have begun" });
        await fleet.agent(victim).kill();
        const ledger = await load.over;
        console.log(ledger.summary(`${victim} killed in mid-stream`));
        expect(ledger.told).toEqual({});
        expect(ledger.of("exact")).toBe(streams);
        await fleet.startAgent(victim);
        await fleet.untilComplete();
      }
      const metrics = await Promise.all(fleet.gateways.map(({ operationsUrl }) => MetricsText.scrape(operationsUrl)));
      continued = metrics.reduce((sum, each) => sum + (each.value("trunkline_failovers_total") ?? 0), 0);
      console.log(`${continued} answers went on at the other machine`);
      expect(continued).toBeGreaterThan(kills);
    },
    testTimeoutMs,
  );

  test(
    "drained by SIGTERM one after the other, hand their answers over and end none, without waiting for them",
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 2, machines });
      await fleet.untilProved();
      const load = fleet.load({
        wish: (index) => ({ tokens: 200 + index, delayMs: 20 }),
        pace: { atOnce: streams },
        count: streams,
      });
      await until(() => load.ledger.begun === streams, { what: "all streams to have begun" });
      const startedAtMs = performance.now();
      expect(await fleet.agent("attic").terminate()).toBe(0);
      const drainedMs = performance.now() - startedAtMs;
      expect(load.ledger.settled).toBe(0);
      const ledger = await load.over;
      console.log(`${ledger.summary("drained")}; drained in ${Math.round(drainedMs)} ms`);
      expect(ledger.told).toEqual({});
      expect(ledger.of("exact")).toBe(streams);
    },
    testTimeoutMs,
  );
});
