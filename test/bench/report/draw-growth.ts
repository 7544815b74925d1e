import { linearAxis, logAxis } from "./axis.ts";
import { figureText } from "./figure-text.ts";
import type { Growth } from "./growth.ts";
import { circle, ink, legend, lineFrom, palette, panel, textAt, whisker, widthOf } from "./svg.ts";

const width = 760;
const height = 400;
const top = 68;
const bottom = height - 56;
const right = width - 32;

/** A line for each series, with the least and the most of every point's rounds. */
export function drawGrowth({ title, xLabel, yLabel, series, logX = false, logY = false }: Growth): string {
  const points = series.flatMap((each) => each.points);
  const yAxis = (logY ? logAxis : linearAxis)(
    points.flatMap(({ y, min, max }) => [y, min, max]),
    { from: bottom, to: top },
  );
  const left = 46 + Math.max(...yAxis.ticks.map(({ text }) => widthOf(text)));
  const xAxis = (logX ? logAxis : linearAxis)(
    points.map(({ x }) => x),
    { from: left, to: right },
  );
  const lines = series.map((each, at) => {
    const colour = palette[at % palette.length] ?? ink.text;
    const places = each.points.toSorted((a, b) => a.x - b.x).map(({ x, y }) => ({ x: xAxis.at(x), y: yAxis.at(y) }));
    const path = places.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    const spreads = each.points.map(({ x, min, max }) => {
      const across = xAxis.at(x);
      return whisker({ x: across, y: yAxis.at(min) }, { x: across, y: yAxis.at(max) }, colour);
    });
    return [
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2" stroke-linejoin="round"/>`,
      ...spreads,
      ...places.map((place) => circle(place, colour)),
    ].join("");
  });
  const content = [
    legend(
      { x: 16, y: 50 },
      series.map(({ name }, at) => ({ name, colour: palette[at % palette.length] ?? ink.text })),
    ),
    ...yAxis.ticks.map(({ value, text }) => {
      const y = yAxis.at(value);
      const label = textAt({ x: left - 8, y: y + 4 }, text, { anchor: "end", fill: ink.faint });
      return lineFrom({ x: left, y }, { x: right, y }, ink.grid) + label;
    }),
    ...xAxis.ticks.map(({ value, text }) => {
      const x = xAxis.at(value);
      const label = textAt({ x, y: bottom + 19 }, text, { anchor: "middle", fill: ink.faint });
      return lineFrom({ x, y: bottom }, { x, y: bottom + 4 }, ink.axis) + label;
    }),
    lineFrom({ x: left, y: bottom }, { x: right, y: bottom }, ink.axis),
    ...lines,
    textAt({ x: (left + right) / 2, y: bottom + 40 }, xLabel, { anchor: "middle", fill: ink.faint }),
    textAt({ x: 22, y: (top + bottom) / 2 }, yLabel, { anchor: "middle", fill: ink.faint, turn: -90 }),
  ];
  const description = series
    .map((each) => `${each.name}: ${each.points.map(({ x, y }) => `${figureText(x)} → ${figureText(y)}`).join(", ")}`)
    .join("; ");
  return panel({ width, height, title, description: `${yLabel} over ${xLabel}. ${description}` }, content);
}
