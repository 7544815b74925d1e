import { setTimeout as pass } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import type { Load } from "../../harness/load/load.ts";
import type { ScriptedWish } from "../../harness/load/scripted-chat.ts";
import { MetricsText } from "../../harness/metrics-text.ts";
import { expectExact, sized, testTimeoutMs, untilCounted } from "./lane.ts";

const kills = sized({ fast: 2, whole: 25 });
const streams = 40;
const natsStreams = 200;
const natsKills = sized({ fast: 1, whole: 5 });
const downMs = 300;
const lostStreams = 50;
const rounds = sized({ fast: 1, whole: 10 });
const toldWithinMs = 5_000;

describe.skipIf(lentOnly("nats", "redis"))("two gateways and two machines with the same model", () => {
  let fleet: BalancedFleet;
  beforeAll(async () => {
    fleet = await BalancedFleet.start({ gateways: 2, machines: { attic: ["scripted"], cellar: ["scripted"] } });
  }, testTimeoutMs);
  afterAll(() => fleet[Symbol.asyncDispose]());

  /** So many answers at once, of which all that are streamed have begun. */
  async function begun(count: number, wish: (index: number) => ScriptedWish, streamed = count): Promise<Load> {
    const load = fleet.load({ wish, pace: { atOnce: count }, count });
    await untilCounted(load.ledger, "begun", streamed);
    return load;
  }
  async function restart(machine: string): Promise<void> {
    await fleet.startAgent(machine);
    await fleet.untilComplete();
  }

  test(
    `machines that are killed in turn, ${kills} times, leave each of ${streams} streams whole to the last character`,
    async () => {
      for (let kill = 0; kill < kills; kill += 1) {
        const victim = kill % 2 === 0 ? "attic" : "cellar";
        await fleet.untilProved();
        const load = await begun(streams, (index) => ({
          tokens: 150 + ((index * 37) % 200),
          delayMs: 5 + (index % 10),
        }));
        await fleet.agent(victim).kill();
        expectExact(await load.over, `${victim} killed in mid-stream`);
        await restart(victim);
      }
      const metrics = await Promise.all(fleet.gateways.map(({ operationsUrl }) => MetricsText.scrape(operationsUrl)));
      const continued = metrics.reduce((sum, each) => sum + each.value("trunkline_failovers_total"), 0);
      console.log(`${continued} answers went on at the other machine`);
      expect(continued).toBeGreaterThan(kills);
    },
    testTimeoutMs,
  );

  test(
    "machines that are drained by SIGTERM hand their answers over and end none, without waiting for them",
    async () => {
      await fleet.untilProved();
      const load = await begun(streams, (index) => ({ tokens: 200 + index, delayMs: 20 }));
      const startedAtMs = performance.now();
      expect(await fleet.agent("attic").terminate()).toBe(0);
      const drainedMs = performance.now() - startedAtMs;
      expect(load.ledger.settled).toBe(0);
      expectExact(await load.over, `drained in ${Math.round(drainedMs)} ms`);
      await restart("attic");
    },
    testTimeoutMs,
  );

  test(
    `NATS that is killed and back in 0.3 s leaves each of ${natsStreams} streams identical to the byte`,
    async () => {
      for (let kill = 0; kill < natsKills; kill += 1) {
        const wish = (index: number) => ({ tokens: 150 + index, delayMs: 20, streamed: index % 5 !== 4 });
        const load = await begun(natsStreams, wish, (natsStreams * 4) / 5);
        await fleet.nats.kill();
        await pass(downMs);
        await fleet.nats.restart();
        expectExact(await load.over, `NATS away for ${downMs} ms`);
      }
    },
    testTimeoutMs,
  );

  test(
    `a machine that is killed in mid-stream leaves each of ${lostStreams} streams an exact prefix and an error event in under ${toldWithinMs} ms, every time`,
    async () => {
      expect(await fleet.agent("cellar").terminate()).toBe(0);
      for (let round = 0; round < rounds; round += 1) {
        const load = await begun(lostStreams, (index) => ({ tokens: 2_000, delayMs: 5 + (index % 20) }));
        await fleet.agent("attic").kill();
        const killedAtMs = performance.now();
        const ledger = await load.over;
        const toldMs = performance.now() - killedAtMs;
        console.log(`${ledger.summary("killed in mid-stream")}; all told ${Math.round(toldMs)} ms after the kill`);
        expect(ledger.told).toEqual({ "cut short and told agent_disconnected": lostStreams });
        expect(ledger.cases.filter(({ received }) => received.text === "")).toEqual([]);
        expect(toldMs).toBeLessThan(toldWithinMs);
        await restart("attic");
      }
    },
    testTimeoutMs,
  );
});
