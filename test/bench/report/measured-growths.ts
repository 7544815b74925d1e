import type { Measurement } from "../measurement.ts";
import { pathCost, processCost, residentKb } from "./cost.ts";
import { growthSeries, type Growth, type GrowthSeries } from "./growth.ts";
import type { Window } from "./over-rounds.ts";
import { ownVariant } from "./own-variant.ts";
import type { Figure } from "./paired-ratios.ts";

type At = readonly (Window & { readonly x: number })[];

const streams = [100, 500, 1_000, 2_000] as const;
const prompts = [
  { scenario: "prompt-10kb", x: 10 },
  { scenario: "prompt-100kb", x: 100 },
  { scenario: "prompt-1.2mb", x: 1_200 },
  { scenario: "body-10mb", x: 10_000 },
] as const;
const gateways = [1, 2, 3, 4] as const;
const machines = [1, 10, 100, 300, 1_000] as const;
const compared = [ownVariant, "bare"] as const;

/** How costs grow with streams, prompts, gateways and machines, as far as a run measured it. */
export function measuredGrowths(measurements: readonly Measurement[]): Growth[] {
  const series = (name: string, at: At, figure: Figure): GrowthSeries => growthSeries(name, measurements, at, figure);
  const growths: Growth[] = [
    {
      name: "streams",
      title: "CPU of a chunk by how many streams are open",
      xLabel: "streams at 20 chunks a second",
      yLabel: "CPU µs per chunk",
      counts: "each",
      logX: true,
      series: compared.map((variant) => series(variant, ofStreams(variant), (one) => pathCost(one, "chunk"))),
    },
    {
      name: "memory",
      title: "Memory by how many streams are open",
      xLabel: "streams",
      yLabel: "resident MB",
      counts: "all",
      series: ["gateway", "agent", "nats"].map((kind) =>
        series(kind, ofStreams(ownVariant), (one) => scaled(residentKb(one, kind), 1 / 1_024)),
      ),
    },
    {
      name: "prompts",
      title: "CPU of a request by the size of its prompt",
      xLabel: "KB of the prompt",
      yLabel: "CPU ms per request",
      counts: "all",
      logX: true,
      logY: true,
      series: compared.map((variant) =>
        series(
          variant,
          prompts.map((prompt) => ({ ...prompt, variant })),
          (one) => scaled(pathCost(one, "request"), 1 / 1_000),
        ),
      ),
    },
    {
      name: "gateways",
      title: "CPU of a request by how many gateways share the load",
      xLabel: "gateways",
      yLabel: "CPU µs per request",
      counts: "each",
      series: [series(ownVariant, gateways.map(ofGateways), (one) => pathCost(one, "request"))],
    },
    {
      name: "machines",
      title: "CPU of a site that nobody asks, by how many machines announce themselves",
      xLabel: "machines",
      yLabel: "CPU ms per second",
      counts: "all",
      series: ["gateway", "nats"].map((kind) =>
        series(kind, ofMachines("unasked"), (one) => scaled(processCost(one, "second", kind), 1 / 1_000)),
      ),
    },
    {
      name: "requests-over-machines",
      title: "CPU of a request by how many machines a gateway knows",
      xLabel: "machines",
      yLabel: "CPU µs per request",
      counts: "each",
      logX: true,
      series: ["gateway", "nats"].map((kind) =>
        series(kind, ofMachines("whole-32"), (one) => processCost(one, "request", kind)),
      ),
    },
  ];
  return growths
    .map((growth) => ({ ...growth, series: growth.series.filter(({ points }) => points.length > 1) }))
    .filter((growth) => growth.series.length > 0);
}

function ofStreams(variant: string): At {
  return streams.map((x) => ({ x, scenario: `paced-${x}`, variant }));
}

function ofGateways(x: number): At[number] {
  return { x, scenario: "whole-32", variant: x === 1 ? ownVariant : `${ownVariant}-${x}` };
}

function ofMachines(scenario: string): At {
  return machines.map((x) => ({ x, scenario, variant: `crowd-${x}` }));
}

function scaled(value: number | undefined, by: number): number | undefined {
  return value === undefined ? undefined : value * by;
}
