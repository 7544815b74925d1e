import { latencyFigure, latencyOf, latencyTitles, type ComparedFigure } from "./compared-figures.ts";
import { costByKind, countUnitOf, pathCost, processCost, type CountedScenario, type LatencyName } from "./cost.ts";
import { drawBars, type Bar } from "./draw-bars.ts";
import { drawGrowth } from "./draw-growth.ts";
import { drawRanges, type RangeGroup } from "./draw-ranges.ts";
import { overRounds, type RoundSpread } from "./over-rounds.ts";
import { ownVariant } from "./own-variant.ts";
import type { BenchResults } from "./results.ts";
import { palette } from "./svg.ts";

/** A plot and the file beside the report that it goes into. */
export interface Plot {
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

type Measured = Pick<BenchResults, "scenarios" | "variants" | "measurements">;

/** What a path costs in one scenario, by process; nothing where no variant has a process. */
export function costPlot(results: Measured, scenario: CountedScenario): Plot | undefined {
  const { variants, measurements } = results;
  const { name } = scenario;
  const unit = countUnitOf(scenario);
  const bars = variants.flatMap(({ name: variant }): Bar[] => {
    const window = { scenario: name, variant };
    const { spread } = overRounds(measurements, [window], (one) => one && pathCost(one, unit));
    if (spread === undefined) return [];
    const ours = measurements.filter((one) => one.scenario === name && one.variant === variant);
    const kinds = new Set(ours.flatMap((one) => [...costByKind(one, unit).keys()]));
    const medians = [...kinds].flatMap((kind) => {
      const part = overRounds(measurements, [window], (one) => one && processCost(one, unit, kind)).spread;
      return part === undefined
        ? []
        : [{ name: kind === variant || kinds.size === 1 ? "one process" : kind, value: part.median }];
    });
    return [{ name: variant, parts: fitted(medians, spread.median), spread, isOwn: variant === ownVariant }];
  });
  if (bars.length === 0) return undefined;
  const title = `${scenario.title}: CPU per ${unit}`;
  const svg = drawBars({ title, xLabel: `CPU µs per ${unit}, median of rounds, least and most`, bars, colourOf });
  return { file: `cost-${name}.svg`, title, svg };
}

/** Medians of parts do not add up to the median of the whole; the bar is as long as the whole. */
function fitted(parts: Bar["parts"], whole: number): Bar["parts"] {
  const sum = parts.reduce((all, { value }) => all + value, 0);
  return sum === 0 ? parts : parts.map((part) => ({ ...part, value: (part.value / sum) * whole }));
}

const kindColours = new Map<string, string>([
  ["gateway", palette[0]],
  ["agent", palette[1]],
  ["nats", palette[2]],
  ["redis", palette[3]],
  ["one process", palette[6]],
]);

function colourOf(kind: string): string {
  return kindColours.get(kind) ?? palette[4];
}

/** One kind of time in all scenarios that are told by it. */
export function latencyPlot(results: Measured, latency: LatencyName): Plot | undefined {
  const { scenarios, variants, measurements } = results;
  const over = (window: { scenario: string; variant: string }, figure: ComparedFigure): RoundSpread | undefined => {
    const { spread } = overRounds(measurements, [window], (one) => one && figure.of(one));
    return spread === undefined ? undefined : inMs(spread);
  };
  const groups = scenarios
    .filter((scenario) => latencyOf(scenario) === latency && countUnitOf(scenario) !== "second")
    .map(({ name: scenario, title }): RangeGroup => {
      const rows = variants.flatMap(({ name: variant }) => {
        const p50 = over({ scenario, variant }, latencyFigure(latency, "p50"));
        const p99 = over({ scenario, variant }, latencyFigure(latency, "p99"));
        return p50 === undefined || p99 === undefined
          ? []
          : [{ name: variant, p50, p99, isOwn: variant === ownVariant }];
      });
      return { title, rows };
    })
    .filter(({ rows }) => rows.length > 0);
  if (groups.length === 0) return undefined;
  const title = `Latency: ${latencyTitles[latency]}`;
  const svg = drawRanges({ title, xLabel: "ms (logarithmic), medians of rounds, least and most", groups });
  return { file: `latency-${fileNames[latency]}.svg`, title, svg };
}

const fileNames: Readonly<Record<LatencyName, string>> = {
  total: "answer",
  firstByte: "first-byte",
  oneWay: "one-way",
  refusedTotal: "refusal",
};

export function growthPlots({ growths }: Pick<BenchResults, "growths">): Plot[] {
  return growths.map((growth) => ({ file: `growth-${growth.name}.svg`, title: growth.title, svg: drawGrowth(growth) }));
}

function inMs({ median, min, max }: RoundSpread): RoundSpread {
  return { median: median / 1_000, min: min / 1_000, max: max / 1_000 };
}
