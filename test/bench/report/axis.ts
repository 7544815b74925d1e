import { figureText } from "./figure-text.ts";

/** Where values lie between two pixels, and which of them are written beside the axis. */
export interface Axis {
  at(value: number): number;
  readonly ticks: readonly { readonly value: number; readonly text: string }[];
}

export interface Pixels {
  readonly from: number;
  readonly to: number;
}

const steps = [1, 2, 2.5, 5, 10] as const;

/** From 0 to a round number that nothing exceeds, with about as many ticks as asked for. */
export function linearAxis(values: readonly number[], { from, to }: Pixels, ticksWanted = 5): Axis {
  const most = Math.max(0, ...values.filter(Number.isFinite)) || 1;
  const rough = most / ticksWanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (steps.find((each) => each * power >= rough * (1 - 1e-9)) ?? 10) * power;
  const count = Math.ceil(most / step - 1e-9);
  const end = count * step;
  const ticks = Array.from({ length: count + 1 }, (_, index) => {
    const value = Number((index * step).toPrecision(12));
    return { value, text: tickText(value) };
  });
  return { at: (value) => from + ((to - from) * Math.max(0, value)) / end, ticks };
}

/** Between round numbers around all values above 0; others lie at its start. */
export function logAxis(values: readonly number[], { from, to }: Pixels): Axis {
  const sizes = values.filter((value) => value > 0 && Number.isFinite(value));
  const [least, most] = sizes.length === 0 ? [1, 10] : [Math.min(...sizes), Math.max(...sizes)];
  const all = roundNumbers(least, most);
  const first = all.findLast((value) => value <= least * (1 + 1e-9)) ?? least;
  const last = all.find((value) => value >= most * (1 - 1e-9) && value > first) ?? most;
  const decades = Math.log10(last / first);
  const ticks = all
    .filter((value) => value >= first && value <= last)
    .filter((value) => decades <= 4 || isPowerOfTen(value))
    .map((value) => ({ value, text: tickText(value) }));
  const size = Math.log(last / first);
  return { at: (value) => from + ((to - from) * Math.log(Math.max(value, first) / first)) / size, ticks };
}

/** 1, 2 and 5 in each power of ten, from one below the least to one above the most. */
function roundNumbers(least: number, most: number): number[] {
  const [low, high] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
  return Array.from({ length: high - low + 2 }, (_, index) => low + index).flatMap((power) =>
    [1, 2, 5].map((each) => Number((each * 10 ** power).toPrecision(6))),
  );
}

function isPowerOfTen(value: number): boolean {
  return Number.isInteger(Number(Math.log10(value).toFixed(6)));
}

function tickText(value: number): string {
  return Math.abs(value) < 1_000 ? String(value) : figureText(value);
}
