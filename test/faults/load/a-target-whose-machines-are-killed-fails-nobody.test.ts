import { expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { testPepper } from "../../harness/trunkline-command.ts";
import { trunklineHere } from "../../harness/trunkline-here.ts";
import { sized, testTimeoutMs, untilCounted } from "./lane.ts";

const count = sized({ fast: 600, whole: 10_000 });
const kills = sized({ fast: 2, whole: 10 });
const atOnce = 40;
/** The model that the route names first has three machines, and the other one two. */
const doomed = ["large-1", "large-2", "large-3"];
const machines = {
  ...Object.fromEntries(doomed.map((machine) => [machine, ["scripted:plain"]])),
  "small-1": ["scripted"],
  "small-2": ["scripted"],
};

test.skipIf(lentOnly("nats", "redis"))(
  `all machines of a route's first target, killed at once ${kills} times, leave no request of ${count} without an answer that had no first token, and cut the others exactly`,
  async () => {
    await using fleet = await BalancedFleet.start({ gateways: 2, machines });
    const keyStore = { TRUNKLINE_REDIS_URL: fleet.redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
    const set = await trunklineHere(["routes", "set", "claude", "scripted:plain", "--then", "scripted"], keyStore);
    expect(set.exitCode, set.err).toBe(0);
    for (const { baseUrl } of fleet.gateways) await fleet.endpoint.at(baseUrl).untilListed("claude");
    const withoutFirstToken: string[] = [];
    const load = fleet.load({
      // Some wait for their first token when the machines die, and some are in mid-stream.
      wish: (index) =>
        index % 2 === 0
          ? { model: "claude", tokens: 5, firstMs: 150, streamed: index % 4 === 0 }
          : { model: "claude", tokens: 40, delayMs: 10 },
      pace: { atOnce },
      onSettled({ outcome, received }) {
        const { status, code, text } = received;
        if (outcome !== "exact" && text === "") withoutFirstToken.push(`${outcome} ${status} ${code}`);
      },
    });
    const { ledger } = load;
    const settled = (wanted: number): Promise<unknown> => untilCounted(ledger, "settled", wanted);
    for (let kill = 0; kill < kills; kill += 1) {
      await settled(((kill + 0.5) * count) / kills);
      await Promise.all(doomed.map((machine) => fleet.agent(machine).kill()));
      // The next machines come while requests still move to the other target.
      await settled(((kill + 0.7) * count) / kills);
      await Promise.all(doomed.map((machine) => fleet.startAgent(machine)));
      await fleet.untilComplete();
    }
    await settled(count);
    await load.end();
    console.log(ledger.summary("a target killed"));
    expect(withoutFirstToken).toEqual([]);
    expect(ledger.lies).toBe(0);
    const { "cut short and told agent_disconnected": cut = 0, ...others } = ledger.told;
    expect(others).toEqual({});
    expect(cut).toBeGreaterThan(0);
    expect(ledger.of("exact") + cut).toBe(ledger.sent);
  },
  testTimeoutMs,
);
