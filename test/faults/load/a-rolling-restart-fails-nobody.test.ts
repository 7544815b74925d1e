import { expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet, ordinaryChats } from "../../harness/load/balanced-fleet.ts";
import type { Settings } from "../../harness/trunkline-command.ts";
import { expectExact, sized, testTimeoutMs, untilCounted } from "./lane.ts";

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

test.skipIf(lentOnly("nats", "redis"))(
  `gateways and machines that are restarted by SIGTERM, one after the other under load, fail none of ${count} requests`,
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
    for (const [index, step] of steps.entries()) {
      await untilCounted(ledger, "settled", ((index + 0.5) * count) / (steps.length + 1));
      await step();
    }
    await untilCounted(ledger, "settled", count);
    await load.end();
    expectExact(ledger, "rolling restart");
    expect(ledger.sent).toBeGreaterThanOrEqual(count);
  },
  testTimeoutMs,
);
