import { alignedTable } from "../../../services/cli/text/aligned-table.ts";
import { cpuFigure } from "./compared-figures.ts";
import type { CountedScenario } from "./cost.ts";
import { noFigure } from "./figure-text.ts";
import type { RoundSpread } from "./over-rounds.ts";
import { ownVariant, without } from "./own-variant.ts";
import { pairedRatios } from "./paired-ratios.ts";
import type { BenchResults } from "./results.ts";

interface FeatureCosts {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** By how many percent more Trunkline whole costs than without each feature; nothing where none was switched off. */
export function featureCosts({
  scenarios,
  variants,
  measurements,
}: Pick<BenchResults, "scenarios" | "variants" | "measurements">): FeatureCosts | undefined {
  const costOf = (scenario: CountedScenario, baseline: string): RoundSpread | undefined =>
    pairedRatios(measurements, {
      scenario: scenario.name,
      variant: ownVariant,
      baseline,
      figure: cpuFigure(scenario).of,
    }).spread;
  const lacking = variants.map(({ name }) => name).filter((name) => name.startsWith(without));
  const shown = scenarios.filter((scenario) => lacking.some((name) => costOf(scenario, name) !== undefined));
  if (shown.length === 0) return undefined;
  const rows = lacking
    .map((name) => [name.slice(without.length), ...shown.map((scenario) => percentText(costOf(scenario, name)))])
    .filter(([, ...cells]) => cells.some((cell) => cell !== noFigure));
  return { headings: ["feature", ...shown.map(({ name }) => name)], rows };
}

/** The same for a terminal. */
export function featureTable(results: Parameters<typeof featureCosts>[0]): string {
  const costs = featureCosts(results);
  return costs === undefined ? "" : alignedTable(costs.headings, costs.rows);
}

function percentText(ratio: RoundSpread | undefined): string {
  if (ratio === undefined) return noFigure;
  const [median, min, max] = [ratio.median, ratio.min, ratio.max].map((times) => Math.round((times - 1) * 100));
  return `${median} % (${min} to ${max})`;
}
