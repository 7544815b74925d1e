import { comparedFigures, type ComparedFigure } from "./compared-figures.ts";
import type { CountedScenario } from "./cost.ts";
import { overRounds, type RoundSpread } from "./over-rounds.ts";
import { isOwn, ownVariant } from "./own-variant.ts";
import { pairedRatios } from "./paired-ratios.ts";
import type { BenchResults } from "./results.ts";

/** One figure of Trunkline beside the same of another, made within rounds. */
export interface Comparison {
  readonly scenario: CountedScenario;
  readonly against: string;
  readonly figure: ComparedFigure;
  /** How many times worse; more is worse, also where the figure itself is better when it is more. */
  readonly times: RoundSpread;
  readonly own: RoundSpread;
  readonly other: RoundSpread;
}

/** What shows as 1.00 is no loss. */
const worseMin = 1.005;

/** Every figure of every scenario that both have. */
export function comparisonsOf(results: Pick<BenchResults, "scenarios" | "variants" | "measurements">): Comparison[] {
  const { scenarios, variants, measurements } = results;
  const others = variants.filter(({ name }) => !isOwn(name));
  return scenarios.flatMap((scenario) =>
    others.flatMap(({ name: against }) =>
      comparedFigures(scenario, measurements).flatMap((figure) => {
        const pair = { scenario: scenario.name, variant: ownVariant, baseline: against, figure: figure.of };
        const { spread } = pairedRatios(measurements, pair);
        const own = over(ownVariant, scenario, figure);
        const other = over(against, scenario, figure);
        if (spread === undefined || own === undefined || other === undefined) return [];
        return [
          { scenario, against, figure, times: figure.isBetter === "less" ? spread : inverse(spread), own, other },
        ];
      }),
    ),
  );

  function over(variant: string, { name: scenario }: CountedScenario, figure: ComparedFigure): RoundSpread | undefined {
    return overRounds(measurements, [{ scenario, variant }], (one) => one && figure.of(one)).spread;
  }
}

/** Every figure in which Trunkline is worse, the worst first. */
export function lossesOf(comparisons: readonly Comparison[]): Comparison[] {
  return comparisons
    .filter(({ times }) => times.median >= worseMin)
    .toSorted((a, b) => b.times.median - a.times.median);
}

/** How many times less. A variant that delivered nothing at all in some round makes it infinite, which is what it is. */
function inverse({ median, min, max }: RoundSpread): RoundSpread {
  return { median: 1 / median, min: 1 / max, max: 1 / min };
}
