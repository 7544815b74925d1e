import type { Measurement } from "../measurement.ts";
import { overRounds, type Window } from "./over-rounds.ts";
import type { Figure } from "./paired-ratios.ts";

export interface GrowthPoint {
  readonly x: number;
  readonly y: number;
  readonly min: number;
  readonly max: number;
}

export interface GrowthSeries {
  readonly name: string;
  readonly points: readonly GrowthPoint[];
}

/** How a cost grows with something: streams, machines, gateways, the size of a prompt. */
export interface Growth {
  /** What its plot's file is called. */
  readonly name: string;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Whether a point is the cost of all x together, or of each one of them. */
  readonly counts: "all" | "each";
  /** Which axes of the plot are logarithmic. */
  readonly logX?: boolean;
  readonly logY?: boolean;
  readonly series: readonly GrowthSeries[];
}

export interface GrowthVerdict {
  /** The cost of all grows as x to this power: 1 is linear. */
  readonly exponent: number;
  readonly isLinearOrBetter: boolean;
  /** The power between the last two points alone, where something may have begun to break. */
  readonly lastExponent: number;
}

/** What noise may add to a power. */
const noise = 0.1;

/** The power that fits best on logarithmic axes; nothing where fewer than two points have a size. */
export function judgeGrowth({ points }: GrowthSeries, counts: Growth["counts"]): GrowthVerdict | undefined {
  const fitted = points
    .filter(({ x, y }) => x > 0 && y > 0)
    .map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) }))
    .toSorted((a, b) => a.x - b.x);
  const slope = slopeOf(fitted);
  const lastSlope = slopeOf(fitted.slice(-2));
  if (slope === undefined || lastSlope === undefined) return undefined;
  const ofAll = counts === "each" ? 1 : 0;
  const exponent = slope + ofAll;
  return { exponent, isLinearOrBetter: exponent <= 1 + noise, lastExponent: lastSlope + ofAll };
}

function slopeOf(points: readonly { readonly x: number; readonly y: number }[]): number | undefined {
  const meanX = meanOf(points.map(({ x }) => x));
  const meanY = meanOf(points.map(({ y }) => y));
  let [along, across] = [0, 0];
  for (const { x, y } of points) {
    across += (x - meanX) * (y - meanY);
    along += (x - meanX) ** 2;
  }
  return along === 0 ? undefined : across / along;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A series of one figure, a window for each x; points without an undisturbed round are left out. */
export function growthSeries(
  name: string,
  measurements: readonly Measurement[],
  at: readonly (Window & { readonly x: number })[],
  figure: Figure,
): GrowthSeries {
  const points = at.flatMap(({ x, scenario, variant }) => {
    const { spread } = overRounds(measurements, [{ scenario, variant }], (one) => one && figure(one));
    return spread === undefined ? [] : [{ x, y: spread.median, min: spread.min, max: spread.max }];
  });
  return { name, points };
}
