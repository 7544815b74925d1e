import type { Scenario } from "./scenario.ts";

const lostInStream = ["event agent_disconnected"] as const;

/** A machine is lost after 3 s of silence, and its client is told at once. Over a tunnel both take 1.3 s longer. */
const toldWithinMs = 3_200;

/** A machine with nobody to take over, and which a row does not start again. */
const alone = { fleet: { machines: { attic: { models: ["scripted"] } } }, heals: false } as const;

/** What may become of a machine, and of the requests that it has. */
export const machineRows: readonly Scenario[] = [
  {
    rows: [1],
    guarantee: "a machine that is killed before it accepts costs the client nothing but time",
    fast: true,
    asks: [{ phase: "P2" }],
    steps: [{ kill: "machine" }],
    endsWithinMs: 1_200,
  },
  {
    rows: [1],
    guarantee: "killed before it accepts, with no other machine, it is told as offline",
    ...alone,
    asks: [{ phase: "P2" }],
    steps: [{ kill: "machine" }],
    outcomes: { it: ["503 agent_offline"] },
    endsWithinMs: 4_000,
  },
  {
    rows: [2],
    guarantee: "a machine that is killed before the first token costs the client nothing but time",
    fast: true,
    asks: [{ phase: "P3" }],
    steps: [{ kill: "machine" }],
    endsWithinMs: 4_000 + 1_600,
  },
  {
    rows: [2],
    guarantee: "killed before the first token, with no other machine, it is told as lost",
    ...alone,
    asks: [{ phase: "P3" }],
    steps: [{ kill: "machine" }],
    // Its progress may be seen on the wire before it has accepted the job; then the gateway knows of no work that was lost.
    outcomes: { it: ["502 agent_disconnected", "503 agent_offline"] },
    endsWithinMs: 5_000,
  },
  {
    rows: [3],
    guarantee: "a machine that is killed in a stream gives the exact beginning and an error",
    fast: true,
    asks: [{ phase: "P4" }],
    steps: [{ kill: "machine" }],
    outcomes: { it: lostInStream },
    endsWithinMs: toldWithinMs,
  },
  {
    rows: [4],
    guarantee: "a stream whose last frame is missing is no success, though all of its text is there",
    fast: true,
    asks: [{ phase: "P5" }],
    steps: [{ kill: "machine" }],
    outcomes: { it: lostInStream },
    endsWithinMs: toldWithinMs,
  },
  {
    rows: [5],
    guarantee: "a whole answer whose machine is killed under way is given by another",
    asks: [{ phase: "P4", whole: true, script: { tokens: 60, delayMs: 20 } }],
    steps: [{ kill: "machine" }],
    endsWithinMs: 4_000 + 1_500,
  },
  {
    rows: [5],
    guarantee: "a whole answer whose machine is killed under way, with no other, is an error with its status",
    fast: true,
    ...alone,
    asks: [{ phase: "P4", whole: true, script: { tokens: 60, delayMs: 20 } }],
    steps: [{ kill: "machine" }],
    outcomes: { it: ["502 agent_disconnected"] },
    endsWithinMs: 5_000,
  },
  {
    rows: [6],
    guarantee: "a machine that is told to stop finishes fifty streams, takes nothing new, and ends",
    asks: [{ phase: "P4" }, { as: "others", times: 49 }],
    steps: [{ stop: "machine" }, { see: "the machine has ended", withinMs: 8_000 }],
    afterwards: [{ see: "new requests are answered", withinMs: 1_000 }],
  },
  {
    rows: [6],
    guarantee: "the only machine that is told to stop is offered no more within a blink",
    ...alone,
    asks: [{ phase: "P4", script: { tokens: 300 } }],
    steps: [
      { stop: "machine" },
      { see: "the model is withdrawn", withinMs: 200 },
      { see: "new requests are refused", withinMs: 200 },
    ],
  },
  {
    rows: [7],
    guarantee: "a machine that is frozen before it accepts costs the client nothing but time",
    fast: true,
    asks: [{ phase: "P2" }],
    steps: [{ freeze: "machine" }, { release: "machines" }],
    endsWithinMs: 1_200,
    afterwards: [{ thaw: "machine" }, { see: "both machines serve", withinMs: 5_000 }],
  },
  {
    rows: [8],
    guarantee: "a freeze of 2 s in a stream is a pause and nothing more",
    fast: true,
    asks: [{ phase: "P4" }],
    steps: [{ freeze: "machine" }, { lastMs: 2_000 }, { thaw: "machine" }],
    pauseMsMax: 3_000,
  },
  {
    rows: [9],
    guarantee: "a machine frozen for longer is an error in its stream, and when it wakes it stops the work",
    fast: true,
    asks: [{ phase: "P4", script: { tokens: 3_000 } }],
    steps: [{ freeze: "machine" }, { lastMs: 6_500 }],
    outcomes: { it: lostInStream },
    endsWithinMs: toldWithinMs,
    afterwards: [
      { thaw: "machine" },
      { see: "no machine works for the first", withinMs: 1_000 },
      { see: "both machines serve", withinMs: 5_000 },
    ],
  },
  {
    rows: [42],
    guarantee: "a machine that is cut off for 10 s is an error in its stream, comes back, and has stopped the work",
    fast: true,
    asks: [{ phase: "P4", script: { tokens: 3_000 } }],
    steps: [{ hold: "machines", of: "machine", direction: "both" }, { lastMs: 10_000 }],
    outcomes: { it: lostInStream },
    endsWithinMs: 11_000,
    afterwards: [
      { release: "machines" },
      { see: "both machines serve", withinMs: 5_000 },
      { see: "no machine works for the first", withinMs: 3_000 },
    ],
  },
];
