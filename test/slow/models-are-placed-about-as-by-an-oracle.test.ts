import { expect, test } from "vitest";
import { fleets } from "../bench/placing/fleets.ts";
import { type FleetResult, policies, simulateFleet } from "../bench/placing/simulate-fleet.ts";

async function run(fleet: string, policy: string): Promise<FleetResult> {
  const [found, by] = [fleets.find(({ name }) => name === fleet), policies.find(({ name }) => name === policy)];
  if (found === undefined || by === undefined) throw new Error(`there is no ${fleet} or no ${policy}`);
  return simulateFleet(found, by, 1);
}

test.each(fleets.map(({ name }) => name))(
  "%s: requests wait little longer than with an oracle, and all are answered",
  async (fleet) => {
    const [ours, oracle, today] = await Promise.all(
      ["trunkline-4", "oracle", "today"].map((policy) => run(fleet, policy)),
    );
    expect(ours?.lost).toBe(0);
    expect(ours?.meanFirstMs).toBeLessThan(1.25 * (oracle?.meanFirstMs ?? 0));
    expect(ours?.meanFirstMs).toBeLessThan(today?.meanFirstMs ?? 0);
    expect(ours?.swaps).toBeLessThanOrEqual(1.5 * (oracle?.swaps ?? 0) + 2);
    // The engines of today serve in the order of the requests.
    expect(ours?.worstFirstMs).toBeLessThan(2 * (today?.worstFirstMs ?? 0));
  },
);
