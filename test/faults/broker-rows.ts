import type { Ask, Scenario, Step } from "./scenario.ts";

/** NATS is killed and back soon after, as in a restart. Whatever was held to hit a request at its place is let go first. */
const restarted: readonly Step[] = [
  { kill: "nats" },
  { release: "machines" },
  { lastRealMs: 300 },
  { restart: "nats" },
];

/** New requests are told at once for as long as the broker is away, and the balancer hears of it. */
const toldAtOnce: Ask = { as: "late", tellsWithinMs: 50 };
const unavailable = { late: ["503 backend_unavailable"] } as const;

export const brokerRows: readonly Scenario[] = [
  {
    rows: [31],
    guarantee: "a NATS that restarts before a machine accepts costs the client nothing but time, or is told",
    fast: true,
    asks: [{ phase: "P2" }],
    steps: restarted,
    outcomes: { it: ["answered", "503 backend_unavailable"] },
    endsWithinMs: 5_000,
  },
  {
    rows: [32],
    guarantee: "a NATS that restarts before the first token costs the client nothing but time",
    asks: [{ phase: "P3", script: { firstMs: 800 } }],
    steps: restarted,
    endsWithinMs: 5_000,
  },
  {
    rows: [32],
    guarantee: "a NATS that restarts leaves every stream byte for byte as it was",
    fast: true,
    asks: [
      { phase: "P4" },
      { as: "others", times: 20, phase: "P4" },
      { as: "whole", whole: true, script: { tokens: 100, delayMs: 20 } },
    ],
    steps: restarted,
    pauseMsMax: 3_000,
  },
  {
    rows: [32],
    guarantee: "a NATS that restarts when only the end is missing leaves the stream whole",
    asks: [{ phase: "P5" }],
    steps: restarted,
    endsWithinMs: 3_000,
  },
  {
    rows: [32],
    guarantee: "a NATS that restarts amid a body in parts has it arrive whole, once",
    asks: [{ phase: "P2", padding: 20_000_000 }],
    steps: restarted,
    endsWithinMs: 20_000,
  },
  {
    rows: [34],
    guarantee: "while NATS is down new requests are told at once, the balancer is, and all heals when it is back",
    fast: true,
    steps: [
      { kill: "nats" },
      { seeReal: "readyz is 503 and healthz 200", withinMs: 2_000 },
      { ask: [{ ...toldAtOnce, times: 20, inTurn: true }] },
      { lastMs: 4_000 },
      { ask: [{ ...toldAtOnce, as: "later", times: 20, inTurn: true }] },
      { restart: "nats" },
    ],
    outcomes: { ...unavailable, later: unavailable.late },
    afterwards: [{ seeReal: "readyz is 200", withinMs: 3_000 }],
  },
  {
    rows: [34],
    guarantee: "a stream whose NATS does not come back ends in an error",
    asks: [{ phase: "P4", script: { tokens: 3_000 } }],
    steps: [{ kill: "nats" }, { lastMs: 10_000 }, { restart: "nats" }],
    outcomes: { it: ["event backend_unavailable", "event agent_disconnected", "event stream_gap"] },
    endsWithinMs: 11_000,
  },
  {
    rows: [35],
    guarantee: "a NATS that is frozen is noticed, and told like one that is gone",
    steps: [
      { freeze: "nats" },
      { seeReal: "readyz is 503 and healthz 200", withinMs: 6_000 },
      { seeReal: "new requests are refused", withinMs: 6_000 },
      { ask: [{ ...toldAtOnce, times: 5, inTurn: true }] },
      { thaw: "nats" },
    ],
    outcomes: unavailable,
    afterwards: [{ seeReal: "readyz is 200", withinMs: 3_000 }],
  },
  {
    rows: [35],
    guarantee: "a NATS that is frozen for a second is a pause in a stream and nothing more",
    asks: [{ phase: "P4" }],
    steps: [{ freeze: "nats" }, { lastRealMs: 1_000 }, { thaw: "nats" }],
    pauseMsMax: 3_000,
  },
  {
    rows: [35],
    guarantee:
      "a NATS that is frozen for six seconds is one code for all who had nothing yet, and another for all who had a part",
    asks: [
      { as: "begun", times: 20, phase: "P4", script: { tokens: 300, delayMs: 20 } },
      { as: "waiting", times: 20, phase: "P3", script: { firstMs: 4_000 } },
      { as: "whole", times: 10, whole: true, phase: "P3", script: { firstMs: 2_000, tokens: 100 } },
    ],
    steps: [
      { freeze: "nats" },
      ...[0, 1, 2, 3, 4, 5].flatMap((second): Step[] => [
        {
          ask: [
            { as: `asked ${second}`, times: 10 },
            { as: `asked whole ${second}`, times: 5, whole: true },
          ],
        },
        { lastRealMs: 1_000 },
      ]),
      { thaw: "nats" },
    ],
    outcomes: {
      begun: ["answered", "event agent_disconnected"],
      ...Object.fromEntries(
        [
          "waiting",
          "whole",
          ...[0, 1, 2, 3, 4, 5].flatMap((second) => [`asked ${second}`, `asked whole ${second}`]),
        ].map((as) => [as, ["answered", "503 backend_unavailable"] as const]),
      ),
    },
  },
  {
    rows: [38],
    guarantee: "a gateway that NATS cuts as a slow consumer goes on, or tells; another feels nothing",
    fleet: { gateways: 2, natsConfig: 'write_deadline: "500ms"' },
    asks: [
      { phase: "P4", script: { tokens: 200_000, delayMs: 0 } },
      { as: "beside", times: 5, phase: "P4", script: { tokens: 20_000, delayMs: 0 } },
      { as: "elsewhere", at: 1, phase: "P4", script: { tokens: 300, delayMs: 20 } },
    ],
    // With the second since its last lease, a longer freeze would make the gateway gone for the machine (`gatewayGoneAfterMs`).
    // A host whose cores are busy may stretch it to that: then the machine ends the jobs, and the clients are told so.
    steps: [{ freeze: "gateway" }, { lastMs: 1_500 }, { thaw: "gateway" }],
    outcomes: {
      it: ["answered", "event stream_gap", "event agent_disconnected"],
      beside: ["answered", "event stream_gap", "event agent_disconnected"],
      elsewhere: ["answered"],
    },
    endsWithinMs: 30_000,
  },
  {
    rows: [40],
    guarantee: "a prompt that no message of NATS could carry goes in parts and is answered",
    asks: [{ padding: 1_300_000 }],
  },
  ...(["there", "back", "both"] as const).map((direction): Scenario => ({
    rows: [41],
    guarantee: `a gateway whose line to NATS is dead (${direction}) is not ready, tells at once, and comes back`,
    fleet: { gateways: 2, proxied: ["gateways"] },
    steps: [
      { hold: "gateways", of: "gateway", direction },
      { seeReal: "readyz is 503 and healthz 200", withinMs: 6_000 },
      { seeReal: "new requests are refused", withinMs: 6_000 },
      { ask: [{ ...toldAtOnce, times: 5, inTurn: true }] },
      { ask: [{ as: "elsewhere", at: 1, times: 5, inTurn: true }] },
      { release: "gateways" },
    ],
    outcomes: unavailable,
    afterwards: [{ seeReal: "readyz is 200", withinMs: 3_000 }],
  })),
  {
    rows: [42],
    guarantee: "a line that is cut under a stream is a pause in it and nothing more",
    fast: true,
    fleet: { proxied: ["gateways"] },
    asks: [{ phase: "P4" }],
    steps: [{ reset: "machines", of: "machine" }, { lastRealMs: 500 }, { reset: "gateways" }],
    pauseMsMax: 3_000,
  },
  {
    rows: [43],
    guarantee: "half a second more on the way, never the same, fails nothing",
    chance: true,
    steps: [
      { slow: "machines", latencyMs: 150, jitterMs: 200 },
      {
        ask: [
          { as: "streams", times: 10, firstTextWithinMs: 1_500 + 500 },
          { as: "wholes", times: 5, whole: true },
        ],
      },
      { slow: "machines" },
    ],
  },
  {
    rows: [43],
    guarantee: "lines that carry one byte at a time fail nothing",
    fast: true,
    fleet: { proxied: ["gateways", "clients"] },
    steps: [
      { slow: "machines", sliceBytesMax: 1 },
      { slow: "gateways", sliceBytesMax: 1 },
      { slow: "clients", sliceBytesMax: 1 },
      {
        ask: [
          { as: "streams", times: 3 },
          { as: "whole", whole: true },
        ],
      },
    ],
  },
  {
    rows: [43],
    guarantee: "a line of 1 MB/s carries a stream as fast as it can, and beats beside it",
    fleet: { proxied: ["gateways"] },
    steps: [
      { slow: "gateways", bytesPerSecond: 1_000_000 },
      {
        ask: [
          { as: "long", script: { tokens: 20_000, delayMs: 0 } },
          { as: "beside", times: 3 },
        ],
      },
    ],
    endsWithinMs: 20_000,
  },
  {
    rows: [39],
    guarantee: "a machine that floods holds up nobody else",
    asks: [{ phase: "P4", script: { tokens: 100_000, delayMs: 0 } }],
    steps: [{ ask: [{ as: "others", times: 20, tellsWithinMs: 2_000 }] }],
    endsWithinMs: 60_000,
  },
];
