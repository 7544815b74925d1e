import { afterAll, beforeAll, expect, test } from "vitest";
import { fleetListing, type ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const burst = 60;

let fleet: Fleet;
let adminKey: string;
beforeAll(async () => {
  const machine = { models: ["scripted"], env: { TRUNKLINE_SLOTS: "8", TRUNKLINE_QUEUE_MAX: "100" } };
  fleet = await startFleet({ machines: { attic: machine, cellar: machine } });
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  adminKey = (await operator.issue({ kind: "admin" })).token.reveal();
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function machines(): Promise<readonly ShownFleetMachine[]> {
  const response = await fetch(`${fleet.gateways[0]?.operationsUrl}/admin/v1/fleet`, {
    headers: { authorization: `Bearer ${adminKey}` },
  });
  return fleetListing.parse(await response.json()).data;
}

/** The machines count all jobs, and no presence is under way that does not. */
async function untilTold(jobs: number): Promise<void> {
  const told = async (): Promise<boolean> =>
    (await machines()).reduce((sum, { running, queued }) => sum + running + queued, 0) === jobs;
  await until(told, { what: `the machines to tell that they have ${jobs} jobs` });
}

test.each([1, 2, 3])("burst %i spreads evenly, though machines tell their load only once a second", async () => {
  const leaving = new AbortController();
  const asked = Array.from({ length: burst }, (_, request) =>
    fleet.endpoint
      .chat(
        { model: "scripted", says: `/script tokens=1000 delay_ms=20 nonce=n${request}`, stream: true },
        leaving.signal,
      )
      .catch(() => undefined),
  );
  const [attic = 0, cellar = 0] = await until(
    async () => {
      const open = (await machines()).map(({ open_jobs: jobs }) => jobs);
      return open.reduce((all, jobs) => all + jobs, 0) === burst && open;
    },
    { what: "all of them to be placed" },
  );
  await untilTold(burst);
  leaving.abort();
  await Promise.all(asked);
  expect(Math.abs(attic - cellar)).toBeLessThanOrEqual(2);
  await untilTold(0);
});
