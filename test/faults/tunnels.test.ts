import { brokerRows } from "./broker-rows.ts";
import { machineRows } from "./machine-rows.ts";
import type { Scenario } from "./scenario.ts";
import { testScenarios } from "./test-scenarios.ts";

/** Rows of the fast lane: a machine that dies, one that freezes, NATS that restarts, a line that is cut. */
const fastRows = new Set([3, 8, 32, 42]);

/** A machine behind a tunnel is taken for lost so late that a stream's status line may be sent before or after. */
const toldLater = ["502 agent_disconnected", "event agent_disconnected"] as const;

/** TCP repeats a packet 3 s after it was lost, so what a line of 2.8 s without packets holds back comes then. */
const blackout: Scenario = {
  rows: [42],
  guarantee: "a tunnel that loses all packets for 2.8 s pauses its streams and nothing more",
  fast: true,
  fleet: { tunnels: true },
  asks: [{ phase: "P4" }],
  steps: [
    { hold: "machines", of: "machine", direction: "both" },
    { lastMs: 3_000 },
    { release: "machines", of: "machine" },
  ],
  pauseMsMax: 4_000,
};

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

testScenarios("machines and the broker, with machines that connect by tunnels", [blackout, ...overTunnels]);
