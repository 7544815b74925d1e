import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet, ordinaryChats } from "../../harness/load/balanced-fleet.ts";
import type { Settings } from "../../harness/trunkline-command.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const count = sized({ fast: 600, whole: 10_000 });
const atOnce = 16;
/** Many times what the balancer takes to hear that a gateway is to stop. */
const gatewayEnv = sized<Settings>({ fast: { TRUNKLINE_GRACE_MS: "1000" }, whole: {} });

/** Each model is on two machines at least, so that one of them may go at a time. */
const machines = {
  attic: ["scripted", "scripted:plain"],
  cellar: ["scripted:plain", "scripted:mlx"],
  desk: ["scripted", "scripted:mlx"],
};
const models = ["scripted", "scripted:plain", "scripted:mlx"];

describe.skipIf(lentOnly("nats", "redis"))("two gateways and three machines behind a balancer", () => {
  test(
    `each restarted by SIGTERM, one after the other under load, fail none of ${count} requests`,
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 2, machines, gatewayEnv });
      const load = fleet.load({
        wish: (index) => ({ ...ordinaryChats(index), model: models[index % models.length] ?? "scripted" }),
        pace: { atOnce },
      });
      const { ledger } = load;
      const steps: (() => Promise<void>)[] = [
        ...fleet.gateways.map((_, index) => async () => {
          expect(await fleet.gateways[index]?.terminate()).toBe(0);
          await fleet.startGateway(index);
        }),
        ...fleet.machines.map((machine) => async () => {
          expect(await fleet.agent(machine).terminate()).toBe(0);
          await fleet.startAgent(machine);
          await fleet.untilComplete();
        }),
      ];
      const settled = (share: number): Promise<unknown> =>
        until(() => ledger.settled >= share * count, {
          what: `${Math.round(share * count)} of ${count} requests`,
          timeoutMs: testTimeoutMs / 2,
          intervalMs: 20,
        });
      for (const [index, step] of steps.entries()) {
        await settled((index + 0.5) / (steps.length + 1));
        await step();
      }
      await settled(1);
      await load.end();
      console.log(ledger.summary("rolling restart"));
      expect(ledger.told).toEqual({});
      expect(ledger.of("exact")).toBe(ledger.sent);
      expect(ledger.sent).toBeGreaterThanOrEqual(count);
    },
    testTimeoutMs,
  );
});
