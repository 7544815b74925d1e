import { linearAxis } from "./axis.ts";
import { figureText } from "./figure-text.ts";
import type { RoundSpread } from "./over-rounds.ts";
import { ink, legend, lineFrom, panel, rectangle, textAt, whisker, widthOf } from "./svg.ts";

export interface Bar {
  readonly name: string;
  /** What the bar is made of, from the axis on. */
  readonly parts: readonly { readonly name: string; readonly value: number }[];
  /** Of the whole bar. */
  readonly spread: RoundSpread;
  /** The one that the others are there for. */
  readonly isOwn?: boolean;
}

const width = 760;
const row = 28;
const top = 66;

/** Bars that lie, each stacked of its parts, with the least and the most of its rounds. */
export function drawBars(plot: {
  readonly title: string;
  readonly xLabel: string;
  readonly bars: readonly Bar[];
  readonly colourOf: (part: string) => string;
}): string {
  const { title, xLabel, bars, colourOf } = plot;
  const left = 24 + Math.max(...bars.map(({ name }) => widthOf(name)), 40);
  const texts = bars.map(({ spread }) => figureText(spread.median));
  const right = width - 28 - Math.max(...texts.map(widthOf), 20);
  const bottom = top + bars.length * row;
  const axis = linearAxis(
    bars.flatMap(({ spread, parts }) => [spread.max, sumOf(parts)]),
    { from: left, to: right },
  );
  const names = [...new Set(bars.flatMap(({ parts }) => parts.map(({ name }) => name)))];
  const drawn = bars.map(({ name, parts, spread, isOwn = false }, at) => {
    const middle = top + at * row + row / 2;
    let from = 0;
    const stack = parts.map((part) => {
      const [begin, end] = [axis.at(from), axis.at(from + part.value)];
      from += part.value;
      return rectangle({ x: begin, y: middle - 9 }, { width: end - begin, height: 18 }, colourOf(part.name));
    });
    const end = Math.max(axis.at(spread.max), axis.at(from));
    return [
      textAt({ x: left - 8, y: middle + 4 }, name, { anchor: "end", weight: isOwn ? 700 : 400 }),
      ...stack,
      whisker({ x: axis.at(spread.min), y: middle }, { x: axis.at(spread.max), y: middle }),
      textAt({ x: end + 8, y: middle + 4 }, texts[at] ?? "", { weight: isOwn ? 700 : 400 }),
    ].join("");
  });
  const content = [
    legend(
      { x: 16, y: 50 },
      names.map((name) => ({ name, colour: colourOf(name) })),
    ),
    ...axis.ticks.map(({ value, text }) => {
      const x = axis.at(value);
      const label = textAt({ x, y: bottom + 17 }, text, { anchor: "middle", fill: ink.faint });
      return lineFrom({ x, y: top }, { x, y: bottom }, ink.grid) + label;
    }),
    ...drawn,
    lineFrom({ x: left, y: top }, { x: left, y: bottom }, ink.axis),
    textAt({ x: (left + right) / 2, y: bottom + 36 }, xLabel, { anchor: "middle", fill: ink.faint }),
  ];
  const description = bars.map(({ name }, at) => `${name}: ${texts[at]}`).join(", ");
  return panel({ width, height: bottom + 48, title, description: `${xLabel}. ${description}` }, content);
}

function sumOf(parts: Bar["parts"]): number {
  return parts.reduce((sum, { value }) => sum + value, 0);
}
