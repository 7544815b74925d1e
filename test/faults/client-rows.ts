import type { Scenario } from "./scenario.ts";

const hows = ["reset", "fin", "half"] as const;
const phases = ["P2", "P3", "P4"] as const;

const endless = { tokens: 100_000, delayMs: 0 } as const;

export const clientRows: readonly Scenario[] = [
  ...hows.flatMap((how) =>
    phases.map((phase): Scenario => ({
      rows: [56],
      guarantee: `a client that leaves (${how}) at ${phase} stops the work for it within a second`,
      fast: how === "reset" && phase !== "P2",
      asks: [{ phase, script: phase === "P3" ? { firstMs: 60_000 } : { tokens: 3_000, delayMs: 20 } }],
      steps: [
        { leave: "it", how },
        { release: "machines" },
        { see: "no machine works for the first", withinMs: 1_000 },
        { see: "the first is settled as left", withinMs: 1_000 },
      ],
      outcomes: { it: ["left"] },
    })),
  ),
  {
    rows: [57],
    guarantee: "a client that reads nothing is cut after 30 s, holds little memory, and stops its machine meanwhile",
    asks: [{ phase: "P4", script: endless }],
    steps: [
      { stopReading: "it" },
      { lastMs: 25_000 },
      { see: "the gateway holds little memory", withinMs: 0 },
      { lastMs: 7_000 },
      { see: "no machine works for the first", withinMs: 8_000 },
      { readOn: "it" },
    ],
    outcomes: { it: ["broken"] },
  },
  {
    rows: [58],
    guarantee: "fifty clients that read nothing hold up none of twenty-five that do",
    asks: [{ as: "idle", times: 50, phase: "P4", script: endless }],
    steps: [
      { stopReading: "idle" },
      { ask: [{ as: "good", times: 25, tellsWithinMs: 5_000 }] },
      { see: "the gateway holds little memory", withinMs: 0 },
      { leave: "idle", how: "reset" },
    ],
    outcomes: { idle: ["left"] },
  },
  {
    rows: [60],
    guarantee: "a client that is lost without a word is found, and its work stopped",
    fleet: { proxied: ["clients"] },
    asks: [{ phase: "P4", script: endless }],
    steps: [
      { hold: "clients", direction: "both" },
      { see: "no machine works for the first", withinMs: 60_000 },
      { cut: "clients" },
      { release: "clients" },
    ],
    outcomes: { it: ["broken"] },
  },
];
