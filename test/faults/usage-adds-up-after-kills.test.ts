import { expect, test } from "vitest";
import { readUsageBy } from "#shared/usage/usage-by-part.ts";
import { addUsage, noUsage, openUsage, type UsageRow, workMetrics } from "#shared/usage/usage.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { BalancedFleet } from "../harness/load/balanced-fleet.ts";
import { TeamTraffic } from "../harness/load/team-traffic.ts";
import { Operator } from "../harness/operator.ts";
import { until } from "../harness/until.ts";
import { lane } from "./lane.ts";

const kills = lane.isWhole ? 20 : 3;
const settledBeforeKill = 40;
const allDays = { from: "2000-01-01", to: "9999-12-31" };
/** The other gateway books what a killed one had under way after 15 s. */
const stillMs = 20_000;

test.skipIf(lentOnly("nats", "redis"))(
  "every way to tell usage apart adds up to one total, which has all that clients received, and every budget has its part of it, also after gateways were killed",
  { timeout: 300_000 },
  async () => {
    const machines = { attic: ["scripted"], cellar: ["scripted"] };
    await using fleet = await BalancedFleet.start({ gateways: 2, machines });
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    const traffic = await TeamTraffic.of(operator);
    const load = fleet.load({
      wish: (index) => ({ tokens: 20 + (index % 80), delayMs: 5 + (index % 10), streamed: index % 4 > 0 }),
      pace: { atOnce: 16 },
      afterRefusalMs: 50,
      ask: traffic.ask,
    });
    for (let kill = 0; kill < kills; kill += 1) {
      const before = load.ledger.settled;
      const what = "answers to settle";
      await until(() => load.ledger.settled >= before + settledBeforeKill, { what, timeoutMs: 60_000 });
      await fleet.gateways[kill % 2]?.kill();
      await fleet.startGateway(kill % 2);
    }
    const { tokensServed } = await load.end();
    const { usage: total = { ...noUsage, day: "" } } = await operator.stillUsage(stillMs);

    const usage = openUsage(operator.store.state);
    const sumOf = (rows: readonly UsageRow[]) => rows.reduce(addUsage, { ...noUsage, day: "" });
    const work = (row: UsageRow) => workMetrics.map((metric) => [metric, row[metric]]);
    for (const part of ["machine", "user"] as const) {
      const { rows, unread } = await readUsageBy(part, usage, allDays);
      expect([part, unread, work(sumOf(rows))]).toEqual([part, 0, work(total)]);
    }
    const { rows: ofMachines } = await usage.read(allDays, "machines");
    expect(ofMachines.map(({ machine }) => machine)).toEqual(Object.keys(machines));
    // Those of the last second of a killed gateway are in no machine's row.
    expect(sumOf(ofMachines).completionTokens).toBeGreaterThan(total.completionTokens * 0.7);
    expect(total.completionTokens).toBeGreaterThanOrEqual(tokensServed);
    const { rows, records, spentByRows, spent } = await traffic.sums();
    expect(records).toEqual(rows);
    expect(spent).toEqual(spentByRows);
    expect(Object.keys(rows)).toHaveLength(4 + 2 + 2 + 1);
    expect(Object.keys(spent)).toHaveLength(4 + 1 + 1 + 1);
    expect(total.cost).toBeGreaterThan(tokensServed * 0.3);
  },
);
