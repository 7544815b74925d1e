import { logAxis } from "./axis.ts";
import { figureText } from "./figure-text.ts";
import type { RoundSpread } from "./over-rounds.ts";
import { circle, ink, legend, lineFrom, palette, panel, rectangle, textAt, whisker, widthOf } from "./svg.ts";

export interface RangeGroup {
  readonly title: string;
  readonly rows: readonly {
    readonly name: string;
    readonly p50: RoundSpread;
    readonly p99: RoundSpread;
    readonly isOwn?: boolean;
  }[];
}

const width = 760;
const row = 24;
const groupHeading = 30;
const top = 62;
const colours = { p50: palette[0], p99: palette[5] } as const;

/** Times from the median to the 99th percentile, on one logarithmic axis for all groups. */
export function drawRanges(plot: {
  readonly title: string;
  readonly xLabel: string;
  readonly groups: readonly RangeGroup[];
}): string {
  const { title, xLabel, groups } = plot;
  const rows = groups.flatMap((group) => group.rows);
  const left = 24 + Math.max(...rows.map(({ name }) => widthOf(name)), 40);
  const textOf = ({ p50, p99 }: (typeof rows)[number]): string =>
    `${figureText(p50.median)} / ${figureText(p99.median)}`;
  const right = width - 28 - Math.max(...rows.map((each) => widthOf(textOf(each))), 40);
  const bottom = top + groups.length * groupHeading + rows.length * row;
  const axis = logAxis(
    rows.flatMap(({ p50, p99 }) => [p50.min, p50.median, p99.median, p99.max]),
    { from: left + 8, to: right },
  );
  const drawn: string[] = [];
  let y = top;
  for (const group of groups) {
    drawn.push(textAt({ x: 16, y: y + 20 }, group.title, { weight: 600, fill: ink.faint }));
    y += groupHeading;
    for (const each of group.rows) {
      const middle = y + row / 2;
      const look = { weight: each.isOwn === true ? 700 : 400 };
      const [from, to] = [axis.at(each.p50.median), axis.at(each.p99.median)];
      drawn.push(
        textAt({ x: left - 8, y: middle + 4 }, each.name, { anchor: "end", ...look }),
        rectangle({ x: from, y: middle - 4 }, { width: Math.max(0, to - from), height: 8 }, ink.axis, 0.3),
        ...(["p50", "p99"] as const).map((percentile) => {
          const { min, median, max } = each[percentile];
          const spread = whisker({ x: axis.at(min), y: middle }, { x: axis.at(max), y: middle }, colours[percentile]);
          return spread + circle({ x: axis.at(median), y: middle }, colours[percentile]);
        }),
        textAt({ x: width - 16, y: middle + 4 }, textOf(each), { anchor: "end", ...look }),
      );
      y += row;
    }
  }
  const content = [
    legend({ x: 16, y: 50 }, [
      { name: "median", colour: colours.p50 },
      { name: "99th percentile", colour: colours.p99 },
    ]),
    ...axis.ticks.map(({ value, text }) => {
      const x = axis.at(value);
      const label = textAt({ x, y: bottom + 22 }, text, { anchor: "middle", fill: ink.faint });
      return lineFrom({ x, y: top }, { x, y: bottom + 6 }, ink.grid) + label;
    }),
    ...drawn,
    textAt({ x: (left + right) / 2, y: bottom + 42 }, xLabel, { anchor: "middle", fill: ink.faint }),
  ];
  const description = groups
    .map((group) => `${group.title}: ${group.rows.map((each) => `${each.name} ${textOf(each)}`).join(", ")}`)
    .join("; ");
  return panel({ width, height: bottom + 56, title, description: `${xLabel}. ${description}` }, content);
}
