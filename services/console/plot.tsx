import { useEffect, useRef, useState } from "preact/hooks";
import { stepText, timeText, timeTicks, valueTicks } from "./plot-axes.ts";
import { msText } from "./quantity.ts";
import { Table } from "./table.tsx";

export interface Series {
  readonly name: string;
  /** A value for each step. Null where none is known. */
  readonly values: readonly (number | null)[];
  /** The value of the whole time, for the legend. */
  readonly total: string;
  /** Its colour by number; grey is 0. Series without one get the colours in their order. */
  readonly colour?: number | undefined;
}

interface PlotProps {
  readonly label: string;
  /** Returns a value with its unit. */
  readonly unit: (value: number) => string;
  /** When each step begins, in milliseconds since 1970. */
  readonly times: readonly number[];
  readonly stepMs: number;
  readonly series: readonly Series[];
  /** Series that add up are stacked bars. Others are lines. */
  readonly isStack?: boolean;
  /** Stands in place of a chart without a value. */
  readonly empty: string;
  /** Called when the viewer drags over a part of the time. */
  readonly onRange?: (fromMs: number, untilMs: number) => void;
}

const height = 200;
const widthMin = 200;
const edge = { left: 56, right: 8, top: 8, bottom: 22 };
const coloursCount = 6;
const colourOf = ({ colour }: Series, index: number): string => `var(--plot-${colour ?? (index % coloursCount) + 1})`;
const valueText = (value: number | null | undefined, unit: PlotProps["unit"]) => (value == null ? "–" : unit(value));

/**
 * A chart over time. The pointer or the arrow keys choose a step, whose figures stand beside it. The same figures are
 * there as a table.
 */
export function Plot(props: PlotProps) {
  const { label, unit, times, stepMs, series, isStack = false, empty, onRange } = props;
  const room = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [at, setAt] = useState<number>();
  const [dragged, setDragged] = useState<number>();
  const [isTable, setTable] = useState(false);
  const hasValues = series.some(({ values }) => values.some((value) => value !== null && (!isStack || value > 0)));
  useEffect(() => {
    if (room.current === null) return undefined;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.max(entry.contentRect.width, widthMin)));
    watch.observe(room.current);
    return () => watch.disconnect();
  }, [hasValues]);
  if (!hasValues) return <p class="empty plot-empty">{empty}</p>;

  const last = times.length - 1;
  const stepWidth = (width - edge.left - edge.right) / times.length;
  const sumAt = (index: number): number => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
  const all = isStack
    ? times.map((_, index) => sumAt(index))
    : series.flatMap(({ values }) => values.map((value) => value ?? 0));
  const ticks = valueTicks(Math.max(...all), unit, unit === msText);
  const x = (index: number): number => edge.left + index * stepWidth;
  const y = (value: number): number =>
    height - edge.bottom - (value / (ticks.at(-1) ?? 1)) * (height - edge.top - edge.bottom);
  const stepAt = (event: PointerEvent): number => {
    const { left } = (event.currentTarget as Element).getBoundingClientRect();
    return Math.min(last, Math.max(0, Math.floor((event.clientX - left - edge.left) / stepWidth)));
  };
  const move = (event: KeyboardEvent): void => {
    const steps: Record<string, number | undefined> = {
      ArrowLeft: Math.max(0, (at ?? last + 1) - 1),
      ArrowRight: Math.min(last, (at ?? last) + 1),
      Home: 0,
      End: last,
    };
    const next = steps[event.key];
    if (next !== undefined) event.preventDefault();
    if (next !== undefined || event.key === "Escape") setAt(next);
  };
  const drop = (event: PointerEvent): void => {
    const [one = 0, other = 0] = [dragged ?? stepAt(event), stepAt(event)].toSorted((first, second) => first - second);
    setDragged(undefined);
    if (one !== other) onRange?.(times[one] ?? 0, (times[other] ?? 0) + stepMs);
  };
  const words = (index: number) =>
    `${stepText(times[index] ?? 0, stepMs)}: ${series.map(({ name, values }) => `${name} ${valueText(values[index], unit)}`).join(", ")}`;
  const untilMs = (times[last] ?? 0) + stepMs;
  const chosen = dragged === undefined || at === undefined ? at : Math.min(dragged, at);
  return (
    <figure>
      <div
        ref={room}
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at ?? last}
        aria-valuetext={words(at ?? last)}
        onKeyDown={move}
        onBlur={() => setAt(undefined)}
        onPointerMove={(event) => setAt(stepAt(event))}
        onPointerLeave={() => setAt(undefined)}
        onPointerDown={(event) => onRange && setDragged(stepAt(event))}
        onPointerUp={drop}
      >
        <svg width={width} height={height} aria-hidden="true">
          {ticks.map((tick) => (
            <g key={tick}>
              <line class="grid" x1={edge.left} x2={width - edge.right} y1={y(tick)} y2={y(tick)} />
              <text x={edge.left - 8} y={y(tick) + 4} text-anchor="end">
                {unit(tick)}
              </text>
            </g>
          ))}
          {timeTicks(times[0] ?? 0, untilMs, width / 70).map(([time, text]) => (
            <text key={time} x={x((time - (times[0] ?? 0)) / stepMs)} y={height - 4} text-anchor="middle">
              {text}
            </text>
          ))}
          {chosen !== undefined && at !== undefined && (
            <rect
              class="chosen"
              x={x(chosen)}
              y={edge.top}
              width={(Math.abs((dragged ?? at) - at) + 1) * stepWidth}
              height={height - edge.top - edge.bottom}
            />
          )}
          {isStack
            ? series.map((each, index) => <path key={each.name} fill={colourOf(each, index)} d={barsOf(index)} />)
            : series.map((each, index) => (
                <g key={each.name} class="line" stroke={colourOf(each, index)}>
                  <path stroke-dasharray={index % 2 === 1 ? "5 3" : undefined} d={lineOf(each)} />
                  <path class="dots" d={dotsOf(each)} />
                </g>
              ))}
        </svg>
        {at !== undefined && (
          <div
            class="plot-tip"
            style={x(at) < width / 2 ? { left: x(at + 1) + 8 } : { right: width - x(at) + 8 }}
            aria-hidden="true"
          >
            {stepText(times[at] ?? 0, stepMs)}
            <Legend
              series={series}
              text={({ values }) => valueText(values[at], unit)}
              all={isStack && unit(sumAt(at))}
            />
          </div>
        )}
      </div>
      <figcaption>
        <Legend
          series={series}
          text={({ total }) => total}
          all={isStack && unit(all.reduce((sum, each) => sum + each, 0))}
        />
        <details open={isTable} onToggle={(event) => setTable(event.currentTarget.open)}>
          <summary>As a table</summary>
          {isTable && <Figures {...props} />}
        </details>
      </figcaption>
    </figure>
  );

  /** Returns the bars of one series, above those before it. */
  function barsOf(place: number): string {
    const wide = Math.max(1, stepWidth * 0.8);
    return times
      .map((_, index) => {
        const below = series.slice(0, place).reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
        const value = series[place]?.values[index] ?? 0;
        const [bottom, top] = [y(below), y(below + value)];
        return value === 0 ? "" : `M${x(index) + (stepWidth - wide) / 2} ${bottom}h${wide}V${top}h${-wide}z`;
      })
      .join("");
  }

  /** Returns a line with a gap where nothing is known. */
  function lineOf({ values }: Series): string {
    const pieces = values.map((value, index) =>
      value === null ? "" : `${values[index - 1] == null ? "M" : "L"}${x(index + 0.5)} ${y(value)}`,
    );
    return pieces.join("");
  }

  /** Returns a dot for each value between two gaps. */
  function dotsOf({ values }: Series): string {
    const isAlone = (index: number): boolean => values[index - 1] == null && values[index + 1] == null;
    return values
      .map((value, index) => (value !== null && isAlone(index) ? `M${x(index + 0.5)} ${y(value)}h0` : ""))
      .join("");
  }
}

interface LegendProps {
  readonly series: readonly Series[];
  readonly text: (each: Series) => string;
  /** The sum of all series, where they add up. */
  readonly all: string | false;
}

function Legend({ series, text, all }: LegendProps) {
  return (
    <ul class="legend">
      {series.map((each, index) => (
        <li key={each.name}>
          <i style={{ background: colourOf(each, index) }} /> <bdi>{each.name}</bdi> <b>{text(each)}</b>
        </li>
      ))}
      {all && series.length > 1 && (
        <li>
          all <b>{all}</b>
        </li>
      )}
    </ul>
  );
}

function Figures({ label, times, series, unit }: PlotProps) {
  return (
    <Table
      caption={label}
      rows={times.map((_, index) => index)}
      keyOf={String}
      empty=""
      columns={[
        ["from", (index) => timeText(times[index] ?? 0)],
        ...series.map(
          ({ name, values }) => [name, (index: number) => valueText(values[index], unit), "right"] as const,
        ),
      ]}
    />
  );
}
