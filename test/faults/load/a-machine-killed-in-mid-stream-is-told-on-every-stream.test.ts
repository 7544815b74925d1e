import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const rounds = sized({ fast: 1, whole: 10 });
const streams = 50;
const toldWithinMs = 5_000;

describe.skipIf(lentOnly("nats", "redis"))("a machine that is killed in mid-stream", () => {
  test(
    `a machine that is killed in mid-stream leaves each of ${streams} streams an exact prefix and an error event in under ${toldWithinMs} ms, every time`,
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 2, machines: { attic: ["scripted"] } });
      for (let round = 0; round < rounds; round += 1) {
        const load = fleet.load({
          wish: (index) => ({ tokens: 2_000, delayMs: 5 + (index % 20) }),
          pace: { atOnce: streams },
          count: streams,
        });
        await until(() => load.ledger.begun === streams, { what: "all streams to have begun" });
        await fleet.agent("attic").kill();
        const killedAtMs = performance.now();
        const ledger = await load.over;
        const toldMs = performance.now() - killedAtMs;
        console.log(`${ledger.summary("killed in mid-stream")}; all told ${Math.round(toldMs)} ms after the kill`);
        expect(ledger.told).toEqual({ "cut short and told agent_disconnected": streams });
        expect(ledger.cases.filter(({ received }) => received.text === "")).toEqual([]);
        expect(toldMs).toBeLessThan(toldWithinMs);
        await fleet.startAgent("attic");
        await fleet.untilComplete();
      }
    },
    testTimeoutMs,
  );
});
