import { setTimeout as pass } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const rounds = sized({ fast: 1, whole: 5 });
const streams = 200;
const downMs = 300;

describe.skipIf(lentOnly("nats", "redis"))("NATS that is killed and back in 0.3 s", () => {
  test(
    `NATS that is killed and back in 0.3 s leaves each of ${streams} streams identical to the byte`,
    async () => {
      const machines = { attic: ["scripted"], cellar: ["scripted"] };
      await using fleet = await BalancedFleet.start({ gateways: 2, machines });
      for (let round = 0; round < rounds; round += 1) {
        const load = fleet.load({
          wish: (index) => ({ tokens: 150 + index, delayMs: 20, streamed: index % 5 !== 4 }),
          pace: { atOnce: streams },
          count: streams,
        });
        const streamed = (streams * 4) / 5;
        await until(() => load.ledger.begun >= streamed, { what: "all streams to have begun", timeoutMs: 10_000 });
        await fleet.nats.kill();
        await pass(downMs);
        await fleet.nats.restart();
        const ledger = await load.over;
        console.log(ledger.summary(`NATS away for ${downMs} ms`));
        expect(ledger.told).toEqual({});
        expect(ledger.of("exact")).toBe(streams);
      }
    },
    testTimeoutMs,
  );
});
