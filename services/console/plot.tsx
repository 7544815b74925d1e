import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { isDark } from "./theme.ts";

interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly kind?: "bars" | undefined;
}

interface PlotProps {
  readonly label: string;
  /** Returns a value with its unit, for the axis and the legend. */
  readonly unit: (value: number) => string;
  /** In seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly height?: number;
}

/** A plot over time. Dragging zooms in, and a double click shows all again. Screen readers get its figures in words. */
export function Plot({ label, unit, times, series, height = 220 }: PlotProps) {
  const room = useRef<HTMLDivElement>(null);
  const dark = isDark.value;
  const shape = series.map(({ name, kind }) => `${name} ${kind}`).join();
  const plot = useRef<uPlot>(undefined);
  useEffect(() => {
    const own = room.current;
    if (own === null) return undefined;
    const made = new uPlot(optionsOf({ unit, series, height, width: own.clientWidth }), [[]], own);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: own.clientWidth, height }));
    watch.observe(own);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [dark, shape, height]);
  useEffect(() => {
    // A new figure moves nothing that the viewer has zoomed to.
    plot.current?.setData([[...times], ...series.map(({ values }) => [...values])] as uPlot.AlignedData);
  });
  return (
    <figure aria-label={label}>
      <div ref={room} class="plot" aria-hidden="true" />
      <figcaption class="unseen">
        {label}. {series.map((each) => inWords(each, unit)).join(" ")}
      </figcaption>
    </figure>
  );
}

function inWords({ name, values }: Series, unit: (value: number) => string): string {
  const known = values.filter((value) => value !== null);
  const last = known.at(-1);
  if (last === undefined) return `${name}: no figures.`;
  return `${name}: from ${unit(Math.min(...known))} to ${unit(Math.max(...known))}, ${unit(last)} at last.`;
}

type Drawn = Pick<PlotProps, "unit" | "series"> & Readonly<Record<"height" | "width", number>>;

function optionsOf({ unit, series, height, width }: Drawn): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const line = { stroke: colour("--line"), width: 1 };
  const axis: uPlot.Axis = { stroke: colour("--quiet"), grid: line, ticks: line, font };
  const strokes = [colour("--accent"), colour("--plot-2")];
  return {
    width,
    height,
    cursor: { points: { size: 6 } },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, values: timesOf },
      { ...axis, size: 64, values: (_plot, splits) => splits.map((each) => unit(each)) },
    ],
    series: [
      { value: (_plot, at: number | null) => (at === null ? "–" : new Date(at * 1_000).toLocaleString()) },
      ...series.map(({ name, kind }, place): uPlot.Series => {
        const stroke = strokes[place % strokes.length] ?? "";
        const drawn = kind === "bars" ? bars(stroke) : { points: { show: true, size: 4 }, width: 1.5 };
        return {
          label: name,
          stroke,
          ...drawn,
          value: (_plot, value: number | null) => (value === null ? "–" : unit(value)),
        };
      }),
    ],
  };
}

function bars(fill: string): uPlot.Series {
  const paths = uPlot.paths.bars?.({ size: [0.7, 40] });
  return { fill, width: 0, points: { show: false }, ...(paths && { paths }) };
}

/** Returns the times on the axis: the day where it begins, else hours and minutes. */
function timesOf(_plot: uPlot, splits: number[]): string[] {
  return splits.map((at) => {
    const time = new Date(at * 1_000);
    const isDay = time.getHours() === 0 && time.getMinutes() === 0;
    return isDay
      ? time.toLocaleDateString(undefined, { month: "short", day: "numeric" })
      : time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
  });
}
