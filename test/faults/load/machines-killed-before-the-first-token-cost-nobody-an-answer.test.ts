import { expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { JobsBeforeTheirFirstToken } from "../../harness/load/jobs-before-their-first-token.ts";
import { until } from "../../harness/until.ts";
import { expectExact, sized, testTimeoutMs, untilCounted } from "./lane.ts";

const count = sized({ fast: 200, whole: 1_000 });
const kills = sized({ fast: 2, whole: 10 });
/** Were all of them on the machine that is killed, they would be a tenth of the requests up to the next kill. */
const atOnce = count / kills / 10;
/** Long beside the rest of an answer, so that whoever is killed is killed before a first token. */
const firstMs = 400;
/** One machine cannot take all requests, however much better it is than the others. */
const slots = Math.max(1, Math.floor(0.4 * atOnce));
/** Any of them is killed, and the others go on: a gateway may have reason to send all requests to one of them. */
const names = ["attic", "cellar", "loft"];

test.skipIf(lentOnly("nats", "redis"))(
  `machines that die before the first token, killed ${kills} times beside others, fail none of ${count} requests`,
  async () => {
    const machines = Object.fromEntries(names.map((machine) => [machine, ["scripted"]]));
    await using fleet = await BalancedFleet.start({
      gateways: 1,
      machines,
      agentEnv: { TRUNKLINE_SLOTS: `${slots}` },
    });
    await using waiting = await JobsBeforeTheirFirstToken.watch(fleet.nats.url);
    let lost = 0;
    const load = fleet.load({
      wish: (index) => ({ tokens: 5, firstMs, streamed: index % 2 === 0 }),
      pace: { atOnce },
    });
    const { ledger } = load;
    for (let kill = 0; kill < kills; kill += 1) {
      await untilCounted(ledger, "settled", ((kill + 0.5) * count) / kills);
      const busy = (): string | undefined => names.find((machine) => waiting.on(machine) >= 3);
      const machine = await until(busy, {
        what: "a machine with jobs before their first token",
        timeoutMs: 20_000,
        intervalMs: 1,
      });
      await fleet.agent(machine).kill();
      lost += waiting.forget(machine);
      await fleet.startAgent(machine);
    }
    await untilCounted(ledger, "settled", count);
    await load.end();
    expect(lost).toBeGreaterThanOrEqual(kills);
    expectExact(ledger, `killed before the first token, and ${lost} jobs with their machines`);
  },
  testTimeoutMs,
);
