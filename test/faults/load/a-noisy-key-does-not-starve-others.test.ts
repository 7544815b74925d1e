import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewKey } from "#shared/records/issue-key.ts";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { LoadLedger } from "../../harness/load/load-ledger.ts";
import { Operator } from "../../harness/operator.ts";
import { until } from "../../harness/until.ts";
import { onlyInWholeLane } from "../lane.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const lastsMs = sized({ fast: 3_000, whole: 20_000 });
const others = 4;
const tokens = 11;
const delayMs = 20;
/** What each of the others asks for in a second, one request after the other. */
const sharePerSecond = 1_000 / ((tokens - 1) * delayMs);
const timesItsShare = 50;

const floods: readonly { readonly name: string; readonly limits: NewKey["limits"]; readonly told: RegExp }[] = [
  { name: "without any limit", limits: {}, told: /^refused 503 server_is_overloaded$/ },
  { name: "with a limit of its own", limits: { concurrency: 1 }, told: /^refused 429 concurrency_limit_exceeded$/ },
];

describe.skipIf(lentOnly("nats", "redis") || onlyInWholeLane("a noisy key"))(
  `a key at ${timesItsShare} times its share, beside ${others} others`,
  () => {
    let fleet: BalancedFleet;
    let operator: Operator;
    let quiet: LoadLedger;

    beforeAll(async () => {
      const agentEnv = { TRUNKLINE_SLOTS: "8", TRUNKLINE_QUEUE_MAX: "16" };
      fleet = await BalancedFleet.start({ gateways: 2, machines: { attic: ["scripted"] }, agentEnv });
      operator = await Operator.on({ redisUrl: fleet.redis.url });
      quiet = await askAsOthers();
    }, testTimeoutMs);
    afterAll(async () => {
      await operator[Symbol.asyncDispose]();
      await fleet[Symbol.asyncDispose]();
    });

    async function askAsOthers(): Promise<LoadLedger> {
      const ledger = new LoadLedger();
      const keys = await Promise.all(Array.from({ length: others }, () => operator.issue()));
      const loads = keys.map(({ token }) =>
        fleet.load({
          key: token.reveal(),
          wish: () => ({ tokens, delayMs }),
          pace: { atOnce: 1 },
          onSettled: (asked) => ledger.enter(asked),
        }),
      );
      const startedAtMs = performance.now();
      const passed = (): boolean => performance.now() - startedAtMs >= lastsMs;
      await until(passed, { what: "the time of the load", timeoutMs: 2 * lastsMs, intervalMs: 50 });
      for (const load of loads) ledger.sent += (await load.end()).sent;
      return ledger;
    }

    test("all are served while there is none", () => {
      expect(quiet.told).toEqual({});
    });

    test.for(floods)(
      "$name it is refused, and every request of the others is served",
      { timeout: testTimeoutMs },
      async ({ name, limits, told }) => {
        const { token } = await operator.issue({ limits });
        const flood = fleet.load({
          key: token.reveal(),
          wish: () => ({ tokens, delayMs }),
          pace: { perSecond: timesItsShare * sharePerSecond },
        });
        const beside = await askAsOthers();
        await flood.end();
        const ratio = (beside.times.totalP99Ms ?? 0) / (quiet.times.totalP99Ms ?? 1);
        console.log(
          [
            quiet.summary("others alone"),
            `${beside.summary(`others beside a key ${name}`)}; p99 ${ratio.toFixed(2)} times as long as alone`,
            flood.ledger.summary("that key"),
          ].join("\n"),
        );
        expect(beside.told).toEqual({});
        expect(Object.keys(flood.ledger.told)).toEqual([expect.stringMatching(told)]);
      },
    );
  },
);
