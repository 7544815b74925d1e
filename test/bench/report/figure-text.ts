import type { RoundSpread } from "./over-rounds.ts";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A number in about three digits: `1,632`, `75.2`, `1.48`, `0.996`. */
export function figureText(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return grouped.format(value);
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.999_5) return value.toFixed(2);
  return size === 0 ? "0" : value.toFixed(3);
}

/** The median, and between which values it lies: `1.48 (1.40–1.61)`. */
export function spreadText({ median, min, max }: RoundSpread): string {
  const [from, to] = [figureText(min), figureText(max)];
  return from === to ? figureText(median) : `${figureText(median)} (${from}–${to})`;
}

export const noFigure = "–";
