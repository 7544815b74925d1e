import type { Phase, Scenario } from "./scenario.ts";

const phases: readonly Phase[] = ["P1", "P2", "P3", "P4", "P5"];

export const gatewayRows: readonly Scenario[] = [
  ...phases.map((phase): Scenario => ({
    rows: [23],
    guarantee: `a gateway that is killed at ${phase} breaks its own requests only, and machines stop the work`,
    fast: phase === "P4",
    fleet: { gateways: 2 },
    asks: [{ as: "elsewhere", at: 1, times: 3, phase: "P4" }],
    steps: [
      { ask: [{ phase, ...(phase === "P4" ? { script: { tokens: 3_000, delayMs: 20 } } : {}) }] },
      { kill: "gateway" },
      { release: "machines" },
      { see: "no machine works for the first", withinMs: 6_000 },
    ],
    outcomes: { it: ["broken"] },
    afterwards: [{ restart: "gateway" }],
  })),
  {
    rows: [24],
    guarantee: "a gateway that is told to stop says so before it refuses anything, and finishes its streams",
    fleet: { gateways: 2, gatewayEnv: { TRUNKLINE_DRAIN_MS: "8000" } },
    asks: [{ phase: "P4" }, { as: "others", times: 100, phase: "P4", script: { tokens: 150, delayMs: 20 } }],
    steps: [
      { stop: "gateway" },
      { see: "readyz is 503 and healthz 200", withinMs: 250 },
      { ask: [{ as: "late", times: 5 }] },
      { see: "the gateway has ended", withinMs: 10_000 },
    ],
    afterwards: [{ restart: "gateway" }],
  },
  {
    rows: [24],
    guarantee: "what a gateway cannot finish before its deadline is told, and it ends",
    fleet: { gateways: 2, gatewayEnv: { TRUNKLINE_DRAIN_MS: "1500" } },
    asks: [{ phase: "P4", script: { tokens: 3_000, delayMs: 20 } }],
    steps: [{ stop: "gateway" }, { seeReal: "the gateway has ended", withinMs: 5_000 }],
    outcomes: { it: ["event shutting_down"] },
    endsWithinMs: 5_000,
    afterwards: [{ restart: "gateway" }],
  },
  {
    rows: [26],
    guarantee: "a gateway that stood still for 10 s has no token of work that was given up, and serves at once",
    fast: true,
    fleet: { gateways: 2 },
    asks: [
      { phase: "P4", script: { tokens: 3_000, delayMs: 20 } },
      { as: "elsewhere", at: 1, phase: "P4" },
    ],
    steps: [{ freeze: "gateway" }, { lastMs: 10_000 }, { thaw: "gateway" }],
    outcomes: {
      it: ["event agent_disconnected", "event stream_gap", "event job_unknown", "event backend_unavailable"],
    },
    endsWithinMs: 10_000 + 2_000,
    afterwards: [{ see: "new requests are answered", withinMs: 1_000 }],
  },
  {
    rows: [27],
    guarantee: "a gateway whose event loop stood for a second blames no machine",
    fast: true,
    asks: [{ phase: "P4" }, { as: "waiting", phase: "P3" }],
    steps: [{ freeze: "gateway" }, { lastMs: 1_000 }, { thaw: "gateway" }, { ask: [{ as: "next", times: 5 }] }],
  },
  {
    rows: [30],
    guarantee: "a gateway without a file descriptor left goes on with its streams, and serves when some are free",
    asks: [{ phase: "P4", script: { tokens: 150, delayMs: 20 } }],
    steps: [
      { limitFiles: "to those open" },
      { crowd: 100 },
      { seeReal: "the crowd is turned away", withinMs: 2_000 },
      { disperse: true },
      { seeReal: "new requests are answered", withinMs: 1_000 },
      { limitFiles: "as ever" },
    ],
  },
];
