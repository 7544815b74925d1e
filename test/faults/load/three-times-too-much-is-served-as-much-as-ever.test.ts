import { expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { percentile } from "../../harness/load/load-ledger.ts";
import { until } from "../../harness/until.ts";
import { onlyInWholeLane } from "../lane.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const lastsMs = sized({ fast: 10_000, whole: 60_000 });
const slots = 16;
const machines = { attic: ["scripted"], cellar: ["scripted"] };
const slotsInAll = slots * Object.keys(machines).length;
/** A request keeps its slot for so long that nothing but the slots decides how many are served. */
const tokens = 21;
const delayMs = 100;
const workMs = (tokens - 1) * delayMs;
const capacityPerSecond = (slotsInAll * 1_000) / workMs;

test.skipIf(lentOnly("nats", "redis") || onlyInWholeLane("overload"))(
  "three times as many requests as the slots can serve leave at least 90 % of the capacity for served ones, and the others are told to come back",
  async () => {
    const agentEnv = { TRUNKLINE_SLOTS: String(slots), TRUNKLINE_QUEUE_MAX: String(slots) };
    await using fleet = await BalancedFleet.start({ gateways: 2, machines, agentEnv });
    const servedAtMs: number[] = [];
    const load = fleet.load({
      wish: () => ({ tokens, delayMs }),
      pace: { perSecond: 3 * capacityPerSecond },
      onSettled: ({ outcome }) => {
        if (outcome === "exact") servedAtMs.push(performance.now() - load.startedAtMs);
      },
    });
    const fullFromMs = 2 * workMs;
    const passed = (): boolean => performance.now() - load.startedAtMs >= lastsMs;
    await until(passed, { what: "the time of the overload", timeoutMs: 2 * lastsMs, intervalMs: 50 });
    const ledger = await load.end();
    const served = servedAtMs.filter((ms) => ms >= fullFromMs && ms < lastsMs).length;
    const perSecond = (served * 1_000) / (lastsMs - fullFromMs);
    const share = perSecond / capacityPerSecond;
    console.log(
      `${ledger.summary("3 × overload")}; ${perSecond.toFixed(1)} served a second of ${capacityPerSecond.toFixed(1)}: ` +
        `${(100 * share).toFixed(1)} % of capacity; ${await refusalsAsGatewaysSaw(fleet)}`,
    );
    expect(Object.keys(ledger.told)).toEqual(["refused 503 server_is_overloaded"]);
    expect(ledger.refusedWithoutRetryAfter).toBe(0);
    expect(share).toBeGreaterThanOrEqual(0.9);
  },
  testTimeoutMs,
);

/** Without the time that a refusal took to be sent, heard and read on a machine that is full of work. */
async function refusalsAsGatewaysSaw(fleet: BalancedFleet): Promise<string> {
  const lines = (await Promise.all(fleet.gateways.map((gateway) => gateway.logLines()))).flat();
  const refusals = lines.filter(({ msg, ["status"]: status }) => msg === "request" && status === 503);
  const tookMs = refusals.map(({ ["ms"]: ms }) => Number(ms));
  return `gateways refused in ${percentile(tookMs, 50)} ms at the median, ${percentile(tookMs, 99)} at p99`;
}
