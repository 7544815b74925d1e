import type { Ask, Phase, Scenario, Step } from "./scenario.ts";
import type { Outcome } from "./scripted-request.ts";

const phases: readonly Phase[] = ["P1", "P2", "P3", "P4", "P5", "P6"];

/** One kind of harm to one kind of process, and what becomes of a request that it meets at each phase. */
interface Harm {
  readonly what: string;
  readonly befalls: readonly Step[];
  /** Before the requests that this harm may not touch are sent, and after all of them have ended. */
  readonly passes?: readonly Step[];
  readonly afterwards?: readonly Step[];
  readonly outcomeAt: (phase: Phase) => readonly Outcome[];
  readonly endsWithinMs: number;
  readonly pauseMsMax?: number;
}

const answered: readonly Outcome[] = ["answered"];
const lost: readonly Outcome[] = ["event agent_disconnected"];
const isBegun = (phase: Phase): boolean => phase === "P4" || phase === "P5";

const harms: readonly Harm[] = [
  {
    what: "a killed machine",
    befalls: [{ kill: "machine" }],
    outcomeAt: (phase) => (isBegun(phase) ? lost : answered),
    endsWithinMs: 6_000,
  },
  {
    what: "a frozen machine",
    befalls: [{ freeze: "machine" }],
    afterwards: [{ thaw: "machine" }, { see: "both machines serve", withinMs: 5_000 }],
    outcomeAt: (phase) => (isBegun(phase) ? lost : answered),
    endsWithinMs: 6_000,
  },
  {
    what: "a killed gateway",
    befalls: [{ kill: "gateway" }],
    afterwards: [{ restart: "gateway" }],
    outcomeAt: (phase) => (phase === "P6" ? [] : ["broken"]),
    endsWithinMs: 6_000,
  },
  {
    what: "a gateway that stands still for 2 s",
    befalls: [{ freeze: "gateway" }, { lastMs: 2_000 }, { thaw: "gateway" }],
    outcomeAt: () => answered,
    endsWithinMs: 8_000,
  },
  {
    what: "a NATS that is killed and back in 0.3 s",
    befalls: [{ kill: "nats" }, { release: "machines" }, { lastRealMs: 300 }, { restart: "nats" }],
    outcomeAt: (phase) => (["P1", "P2", "P6"].includes(phase) ? ["answered", "503 backend_unavailable"] : answered),
    endsWithinMs: 8_000,
    pauseMsMax: 3_000,
  },
  {
    what: "a NATS that stands still for a second",
    befalls: [{ freeze: "nats" }, { lastRealMs: 1_000 }, { thaw: "nats" }],
    outcomeAt: () => answered,
    endsWithinMs: 8_000,
    pauseMsMax: 3_000,
  },
  {
    what: "a Redis that is killed and back in a second",
    befalls: [{ kill: "redis" }],
    passes: [{ lastRealMs: 1_000 }, { restart: "redis" }],
    outcomeAt: () => answered,
    endsWithinMs: 8_000,
    pauseMsMax: 1_000,
  },
  {
    what: "a Redis that stands still for a second",
    befalls: [{ freeze: "redis" }],
    passes: [{ lastRealMs: 1_000 }, { thaw: "redis" }],
    outcomeAt: () => answered,
    endsWithinMs: 8_000,
    pauseMsMax: 1_000,
  },
];

/** Killed and frozen × machine, gateway, NATS and Redis × every phase of a request, beside one at another gateway. */
export const cellRows: readonly Scenario[] = harms.flatMap((harm) => phases.map((phase) => cell(harm, phase)));

function cell(harm: Harm, phase: Phase): Scenario {
  const { what, befalls, passes = [], afterwards = [], outcomeAt, endsWithinMs, pauseMsMax } = harm;
  const allowed = outcomeAt(phase);
  const isIdle = phase === "P6";
  const beside: Ask = { as: "elsewhere", at: 1, script: { tokens: 20, delayMs: 5 } };
  const isGatewayGone = befalls.some((step) => "kill" in step && step.kill === "gateway");
  const goesOn: readonly Step[] = phase === "P1" && !isGatewayGone ? [{ sendBody: "it" }] : [];
  const asksThen: readonly Step[] = isIdle && !isGatewayGone ? [{ ask: [{ as: "it" }] }] : [];
  // The frame that ends the job had not left the machine.
  const isLastFrameStuck = phase === "P5" && befalls.some((step) => "freeze" in step && step.freeze === "machine");
  const isBus = what.includes("NATS");
  return {
    rows: [],
    guarantee: `${what}, at ${phase}: ${isIdle && isGatewayGone ? "others feel nothing" : allowed.join(" or ")}`,
    fleet: { gateways: 2 },
    asks: isIdle ? [] : [{ phase }],
    steps: [
      ...befalls,
      ...(isLastFrameStuck ? [] : [{ release: "machines" } as const]),
      ...goesOn,
      ...asksThen,
      { ask: [beside] },
      ...passes,
      ...(isLastFrameStuck ? [{ lastMs: 4_000 }] : []),
    ],
    outcomes: { it: allowed, elsewhere: isBus ? ["answered", "503 backend_unavailable"] : answered },
    endsWithinMs,
    ...(pauseMsMax === undefined ? {} : { pauseMsMax }),
    afterwards,
  };
}
