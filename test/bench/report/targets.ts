import type { Measurement } from "../measurement.ts";
import type { Bound } from "./bound.ts";
import { deliveredShare, pathCost, processCost, refusalsOf, residentKb } from "./cost.ts";
import type { Window } from "./over-rounds.ts";
import { ownVariant as own } from "./own-variant.ts";
import { ratio, type Figure } from "./paired-ratios.ts";

/** One figure that Trunkline is held against, made within a round of the windows it needs. */
export interface Target {
  readonly id: string;
  readonly scenario: string;
  readonly measure: string;
  readonly unit: "×" | "ms" | "KB" | "";
  readonly bound: Bound;
  /** What is wished for beyond the bound. */
  readonly aim?: number;
  /** What a prototype without any of Trunkline's features reached: a direction, no promise. */
  readonly prototype?: number;
  /** How many rounds a verdict is asked of, where it is not of the usual number. */
  readonly rounds?: number;
  readonly needs: readonly Window[];
  readonly figure: (...windows: readonly Measurement[]) => number | undefined;
}

type Told = Pick<Target, "bound" | "aim" | "prototype">;

const called: Readonly<Record<string, string>> = {
  "plain-proxy": "F",
  bare: "B",
  musistudio: "M",
  portkey: "P",
  nginx: "nginx",
  trunkline: "one gateway",
};

const perRequest: Figure = (measured) => pathCost(measured, "request");
const perChunk: Figure = (measured) => pathCost(measured, "chunk");
const oneWayP99: Figure = ({ oneWay }) => oneWay?.p99;
const totalP50: Figure = ({ total }) => total?.p50;

const slowest = { from: { scenario: "paced-500", streams: 500 }, to: { scenario: "paced-2000", streams: 2_000 } };

/** What the product is held to. F is `plain-proxy`, B `bare`, M `musistudio`, P `portkey`. */
export const targets: readonly Target[] = [
  over("small-answers-cpu-f", "whole-32", "CPU per request", perRequest, "plain-proxy", most(2, { prototype: 1.48 })),
  over("small-answers-cpu-m", "whole-32", "CPU per request", perRequest, "musistudio", most(0.25, { prototype: 0.16 })),
  over("small-answers-cpu-p", "whole-32", "CPU per request", perRequest, "portkey", most(0.08, { prototype: 0.05 })),
  over("small-answers-cpu-b", "whole-32", "CPU per request", perRequest, "bare", most(1.5, { aim: 1.15 })),
  over("burst-cpu-f", "burst", "CPU per chunk", perChunk, "plain-proxy", most(3, { prototype: 2.2 })),
  over("burst-cpu-m", "burst", "CPU per chunk", perChunk, "musistudio", most(0.7, { prototype: 0.49 })),
  over("burst-cpu-p", "burst", "CPU per chunk", perChunk, "portkey", most(0.25, { prototype: 0.15 })),
  over("burst-cpu-b", "burst", "CPU per chunk", perChunk, "bare", most(1.4, { aim: 1.15 })),
  over("paced-500-cpu-f", "paced-500", "CPU per chunk", perChunk, "plain-proxy", most(2.1, { prototype: 1.7 })),
  over("paced-500-cpu-m", "paced-500", "CPU per chunk", perChunk, "musistudio", most(0.85, { prototype: 0.66 })),
  over("paced-500-cpu-p", "paced-500", "CPU per chunk", perChunk, "portkey", most(0.65, { prototype: 0.52 })),
  over("paced-500-cpu-b", "paced-500", "CPU per chunk", perChunk, "bare", most(1.3, { aim: 1.15 })),
  over("paced-500-p99-f", "paced-500", "one-way p99", oneWayP99, "plain-proxy", most(2, { prototype: 1 })),
  over("paced-500-p99-m", "paced-500", "one-way p99", oneWayP99, "musistudio", most(0.3, { prototype: 0.06 })),
  over("paced-2000-cpu-f", "paced-2000", "CPU per chunk", perChunk, "plain-proxy", most(1.3, { prototype: 1.05 })),
  over("paced-2000-cpu-b", "paced-2000", "CPU per chunk", perChunk, "bare", most(1.3, { aim: 1.15 })),
  {
    id: "paced-2000-gateway-nginx",
    scenario: "paced-2000",
    measure: "CPU per chunk of the gateway alone, over nginx",
    unit: "×",
    ...most(1, { prototype: 0.77 }),
    needs: windows("paced-2000", own, "nginx"),
    figure: (ours, nginx) => ours && nginx && ratio(processCost(ours, "chunk", "gateway"), pathCost(nginx, "chunk")),
  },
  ofOne("paced-2000-delivered", "paced-2000", "delivered of offered", deliveredShare, {
    bound: { atLeast: 0.99 },
    prototype: 0.996,
  }),
  // A window with a bad answer misses every target of its own; that there was an undisturbed one is what is left to ask.
  ofOne(
    "paced-4000-broken",
    "paced-4000",
    "broken streams",
    ({ bad, chunks }) => (chunks > 0 ? bad : undefined),
    most(0),
  ),
  over("warm-p50-m", "whole-1", "p50 of a small answer", totalP50, "musistudio", most(0.8, { prototype: 0.65 })),
  over("warm-p50-f", "whole-1", "p50 of a small answer", totalP50, "plain-proxy", most(2.5, { prototype: 1.9 })),
  {
    id: "first-byte-over-direct",
    scenario: "first-byte",
    measure: "p50 of the first byte, beyond direct",
    unit: "ms",
    ...most(0.8, { prototype: 0.48 }),
    needs: windows("first-byte", own, "direct"),
    figure: (ours, direct) => msBeyond(ours?.firstByte?.p50, direct?.firstByte?.p50),
  },
  ofOne("lonely-chunk", "lonely", "one-way p50 of a lonely stream's chunk", ({ oneWay }) => inMs(oneWay?.p50), {
    ...most(1, { prototype: 0.43 }),
    unit: "ms",
  }),
  memoryPerStream("gateway", most(20, { prototype: 12 })),
  memoryPerStream("agent", most(20, { prototype: 13 })),
  ofOne("soak-live", "soak", "memory that is alive, at the end over that after a fifth", told("liveGrowth"), {
    ...most(1.05),
    unit: "×",
    rounds: 1,
  }),
  ofOne("soak-resident", "soak", "resident memory, at the end over that when busy at first", told("residentGrowth"), {
    ...most(1.05),
    unit: "×",
    rounds: 1,
  }),
  ofOne(
    "nats-over-gateway",
    "whole-32",
    "CPU of NATS over CPU of the gateway",
    (ours) => ratio(processCost(ours, "request", "nats"), processCost(ours, "request", "gateway")),
    { ...most(0.5, { prototype: 0.35 }), unit: "×" },
  ),
  {
    ...over("two-gateways-cpu", "whole-32", "CPU per request of two gateways", perRequest, own, most(1.1)),
    needs: windows("whole-32", "trunkline-2", own),
  },
  {
    id: "rejection-cost",
    scenario: "overload-refused",
    measure: "CPU of a rejection over a served request",
    unit: "×",
    ...most(0.2),
    needs: [
      { scenario: "overload-served", variant: "trunkline-small" },
      { scenario: "overload-refused", variant: "trunkline-small" },
    ],
    figure: (served, refused) => served && refused && rejectionCost(served, refused),
  },
  {
    id: "large-prompt-added",
    scenario: "prompt-1.2mb",
    measure: "p50 of a 1.2 MB prompt's answer, beyond direct",
    unit: "ms",
    ...most(25),
    needs: windows("prompt-1.2mb", own, "direct"),
    figure: (ours, direct) => msBeyond(ours?.total?.p50, direct?.total?.p50),
  },
  ofOne(
    "large-prompt-loop",
    "prompt-1.2mb",
    "longest that the event loop stood still, by a neighbour's chunk",
    ({ figures }) => figures?.["loopBlockMs"] ?? figures?.["neighbourHeldUpMs"],
    { ...most(50), unit: "ms" },
  ),
];

/**
 * What one refusal costs of what a served request costs. While some are refused others are served, at the price that
 * they had at capacity: what remains is the refusals'.
 */
export function rejectionCost(served: Measurement, refused: Measurement): number | undefined {
  const price = pathCost(served, "request");
  const all = pathCost(refused, "request");
  const refusals = refusalsOf(refused);
  if (price === undefined || all === undefined || refusals === 0) return undefined;
  const spent = all * (refused.requests + refusals);
  return (spent - price * refused.requests) / refusals / price;
}

/** In words: `at most 2 ×`. */
export function boundText({ bound, unit }: Pick<Target, "bound" | "unit">): string {
  const inWords = "atMost" in bound ? `at most ${bound.atMost}` : `at least ${bound.atLeast}`;
  return unit === "" ? inWords : `${inWords} ${unit}`;
}

function over(id: string, scenario: string, measure: string, figure: Figure, baseline: string, bounds: Told): Target {
  return {
    id,
    scenario,
    measure: `${measure}, over ${called[baseline] ?? baseline}`,
    unit: "×",
    ...bounds,
    needs: windows(scenario, own, baseline),
    figure: (ours, other) => ours && other && ratio(figure(ours), figure(other)),
  };
}

function ofOne(
  id: string,
  scenario: string,
  measure: string,
  figure: Figure,
  bounds: Told & Partial<Pick<Target, "unit" | "rounds">>,
): Target {
  const needs = windows(scenario, own);
  return { id, scenario, measure, unit: "", ...bounds, needs, figure: (ours) => ours && figure(ours) };
}

function memoryPerStream(kind: string, bounds: Told): Target {
  const { from, to } = slowest;
  return {
    id: `memory-${kind}`,
    scenario: to.scenario,
    measure: `resident memory of the ${kind} for each further stream`,
    unit: "KB",
    ...bounds,
    needs: [
      { scenario: from.scenario, variant: own },
      { scenario: to.scenario, variant: own },
    ],
    figure: (few, many) => {
      const [less, more] = [few && residentKb(few, kind), many && residentKb(many, kind)];
      return less === undefined || more === undefined ? undefined : (more - less) / (to.streams - from.streams);
    },
  };
}

function windows(scenario: string, ...variants: readonly string[]): Window[] {
  return variants.map((variant) => ({ scenario, variant }));
}

function most(atMost: number, beside: Omit<Told, "bound"> = {}): Told {
  return { bound: { atMost }, ...beside };
}

function told(name: string): Figure {
  return ({ figures }) => figures?.[name];
}

function inMs(us: number | undefined): number | undefined {
  return us === undefined ? undefined : us / 1_000;
}

function msBeyond(us: number | undefined, baselineUs: number | undefined): number | undefined {
  return us === undefined || baselineUs === undefined ? undefined : (us - baselineUs) / 1_000;
}
