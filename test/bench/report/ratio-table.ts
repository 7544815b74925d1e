import { alignedTable } from "../../../services/cli/text/aligned-table.ts";
import { cpuFigure, latencyFigure, latencyOf, type ComparedFigure } from "./compared-figures.ts";
import { countUnitOf, type CountedScenario } from "./cost.ts";
import { noFigure, spreadText } from "./figure-text.ts";
import { overRounds } from "./over-rounds.ts";
import { isOwn, ownVariant } from "./own-variant.ts";
import { pairedRatios } from "./paired-ratios.ts";
import type { BenchResults } from "./results.ts";

/** Trunkline over everything beside it, for a terminal: in every scenario what it costs, and how long it takes. */
export function ratioTable(results: Pick<BenchResults, "scenarios" | "variants" | "measurements">): string {
  const { scenarios, variants, measurements } = results;
  const others = variants.map(({ name }) => name).filter((name) => !isOwn(name) && isMeasured(name));
  const rows = scenarios.flatMap((scenario) =>
    headlines(scenario).flatMap((figure) => {
      const needs = [{ scenario: scenario.name, variant: ownVariant }];
      const { spread } = overRounds(measurements, needs, (one) => one && figure.of(one));
      if (spread === undefined) return [];
      const ratios = others.map((baseline) => {
        const pair = { scenario: scenario.name, variant: ownVariant, baseline, figure: figure.of };
        const { spread: ratio } = pairedRatios(measurements, pair);
        return ratio === undefined ? noFigure : spreadText(ratio);
      });
      return [[scenario.name, `${figure.name}, ${figure.unit}`, spreadText(spread), ...ratios]];
    }),
  );
  return alignedTable(["scenario", "figure", ownVariant, ...others.map((name) => `/ ${name}`)], rows);

  function isMeasured(variant: string): boolean {
    return measurements.some((measured) => measured.variant === variant);
  }
}

/** Those that a scenario is mainly about. */
export function headlines(scenario: CountedScenario): ComparedFigure[] {
  const latency = latencyOf(scenario);
  if (countUnitOf(scenario) === "second") return [cpuFigure(scenario)];
  return [cpuFigure(scenario), latencyFigure(latency, "p50"), latencyFigure(latency, "p99")];
}
