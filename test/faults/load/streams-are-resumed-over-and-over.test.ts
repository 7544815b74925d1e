import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { percentile } from "../../harness/load/load-ledger.ts";
import { ReconnectingClients } from "../../harness/load/reconnecting-clients.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const cutsWanted = sized({ fast: 60, whole: 1_000 });
const killsWanted = sized({ fast: 3, whole: 60 });
const atOnce = 12;
const tokens = 120;
const delayMs = 15;
/** Resumed within this time after the reconnect, for nearly all; a goal that is printed and not asserted. */
const goalMs = 200;

describe.skipIf(lentOnly("nats", "redis"))("clients of three gateways that lose their connections", () => {
  test(
    `over and over, ${cutsWanted} times in all and by killed gateways too, get every character once`,
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 3, machines: { attic: ["scripted"] } });
      const clients = new ReconnectingClients({ random: new SeededRandom(1), staysMaxMs: tokens * delayMs });
      const load = fleet.load({ wish: () => ({ tokens, delayMs }), pace: { atOnce }, ask: clients.resume });
      const cuts = (): number => clients.dropped + clients.broken;
      for (let kill = 0; kill < killsWanted; kill += 1) {
        const before = cuts();
        await until(() => cuts() > before + 3, { what: "some cuts", timeoutMs: testTimeoutMs / 2 });
        const index = kill % fleet.gateways.length;
        await fleet.gateways[index]?.kill();
        await fleet.startGateway(index);
      }
      await until(() => cuts() >= cutsWanted, { what: "all cuts", timeoutMs: testTimeoutMs / 2 });
      const ledger = await load.end();
      const p95Ms = Math.round(percentile(clients.resumedMs, 95) ?? 0);
      console.log(
        `${clients.dropped} connections dropped and ${clients.broken} lost with their gateway; resumed in ${p95Ms} ms at p95 (goal ${goalMs} ms)`,
      );
      expect(ledger.told).toEqual({});
      expect(ledger.of("exact")).toBe(ledger.sent);
      expect(clients.refusals.filter((refusal) => !refusal.includes("balancer_"))).toEqual([]);
      expect(clients.broken).toBeGreaterThan(0);
    },
    testTimeoutMs,
  );
});
