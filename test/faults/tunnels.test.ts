import { brokerRows } from "./broker-rows.ts";
import { machineRows } from "./machine-rows.ts";
import type { Scenario } from "./scenario.ts";
import { testScenarios } from "./test-scenarios.ts";

/** Rows of the fast lane: a machine that dies, one that freezes, NATS that restarts, a line that is cut. */
const fastRows = new Set([3, 8, 32, 42]);

/** A machine behind a tunnel is taken for lost after 6 s, and the status line of a stream waits for 5 s. */
const toldLater = ["502 agent_disconnected", "event agent_disconnected"] as const;

const overTunnels = [...machineRows, ...brokerRows].map((scenario): Scenario => ({
  ...scenario,
  guarantee: `${scenario.guarantee} (over a tunnel)`,
  fast: scenario.fast === true && scenario.rows.some((row) => fastRows.has(row)),
  fleet: { ...scenario.fleet, tunnels: true },
  outcomes: Object.fromEntries(
    Object.entries(scenario.outcomes ?? {}).map(([name, allowed]) => [
      name,
      allowed.includes(toldLater[0]) ? [...allowed, ...toldLater] : allowed,
    ]),
  ),
}));

testScenarios("machines and the broker, with machines that connect by tunnels", overTunnels);
