import type { HistorySeries, HistorySums } from "#shared/history/read-history.ts";
import { type HistoryAnswer, timesOf, valuesOf } from "../history.ts";
import { Section } from "../parts.tsx";
import { Plot, type Series } from "../plot.tsx";
import { msText, shortNumber } from "../quantity.ts";
import { Time } from "../values.tsx";

interface ChartsProps {
  readonly history: HistoryAnswer;
  readonly onRange?: (fromMs: number, untilMs: number) => void;
}

type Figure = (sums: HistorySums) => number | null | undefined;
/** A series of a chart: its name, where its sums are, the figure that is drawn of them, and its colour by number. */
type ChartSeries = readonly [name: string, of: HistorySeries, figure: Figure, colour?: number | undefined];

const noneEnded = "No request ended in this range.";

/** Requests, tokens, waits, speeds and failures over time, in total or by model or machine. */
export function HistoryCharts(props: ChartsProps) {
  const { history } = props;
  const { all, data, since, known_since: known } = history;
  const isCut = data.length > 0;
  if (all.total.requests === 0) return <p class="empty plot-empty">{noneEnded}</p>;
  return (
    <>
      {known !== null && known > since && (
        <p class="quiet">
          Nothing is known of the time before <Time at={known} />, when this site began to keep sums.
        </p>
      )}
      <div class="columns">
        <Requests {...props} />
        <Chart
          {...props}
          title="Tokens"
          isStack
          parts={isCut ? byPart(history, tokensOf) : tokenKinds(all)}
          empty="No token was counted in this range."
        />
        <Waits {...props} />
        <Chart
          {...props}
          title={isCut ? "Tokens a second, p50" : "Tokens a second"}
          parts={
            isCut ? byPart(history, ({ tokens_per_second: rate }) => rate?.p50) : percentiles(all, "tokens_per_second")
          }
          empty="No stream ended in this range."
        />
        <Chart
          {...props}
          title="Failures by code"
          isStack
          parts={failures(all)}
          empty="No request failed in this range."
        />
      </div>
    </>
  );
}

interface TitledProps extends ChartsProps {
  readonly title?: string;
}

export function Requests({ title = "Requests", ...props }: TitledProps) {
  const { history } = props;
  const parts = history.data.length > 0 ? byPart(history, ({ requests }) => requests) : outcomes(history.all);
  return <Chart {...props} title={title} isStack parts={parts} />;
}

export function Waits({ title = "Wait for the first token", ...props }: TitledProps) {
  const { history } = props;
  const isCut = history.data.length > 0;
  return (
    <Chart
      {...props}
      title={isCut ? `${title}, p95` : title}
      unit={msText}
      parts={isCut ? byPart(history, ({ first_token_ms: ms }) => ms?.p95) : percentiles(history.all, "first_token_ms")}
      empty="No stream began in this range."
    />
  );
}

function byPart({ data }: HistoryAnswer, figure: Figure): ChartSeries[] {
  return data.map((each) => [each.of ?? "others", each, figure, each.of === null ? 0 : undefined]);
}

interface ChartProps extends ChartsProps {
  readonly title: string;
  readonly parts: readonly ChartSeries[];
  readonly isStack?: boolean;
  readonly unit?: (value: number) => string;
  readonly empty?: string;
}

function Chart({ history, title, parts, isStack = false, unit = shortNumber, empty = noneEnded, onRange }: ChartProps) {
  const series = parts.map(([name, of, figure, colour]): Series => {
    const total = figure(of.total);
    return {
      name,
      values: valuesOf(history, of, figure, isStack ? 0 : null),
      total: total == null ? "–" : unit(total),
      colour,
    };
  });
  const stepMs = history.step_seconds * 1_000;
  return (
    <Section title={title}>
      <Plot
        label={title}
        times={timesOf(history)}
        {...{ stepMs, series, unit, isStack, empty }}
        {...(onRange && { onRange })}
      />
    </Section>
  );
}

const tokensOf: Figure = (sums) => sums.prompt_tokens + sums.completion_tokens;

function tokenKinds(all: HistorySeries): ChartSeries[] {
  return [
    ["prompt, computed", all, (sums) => sums.prompt_tokens - sums.cached_tokens],
    ["prompt, from the cache", all, (sums) => sums.cached_tokens],
    ["answer", all, (sums) => sums.completion_tokens],
  ];
}

function percentiles(all: HistorySeries, of: "first_token_ms" | "tokens_per_second"): ChartSeries[] {
  return [
    ["p50", all, (sums) => sums[of]?.p50],
    ["p95", all, (sums) => sums[of]?.p95],
  ];
}

function outcomes(all: HistorySeries): ChartSeries[] {
  return [["ok", all, (sums) => sums.requests - sums.failed], ...failures(all)];
}

/** The codes of failures that have a part of their own. */
const codesMax = 4;

function failures(all: HistorySeries): ChartSeries[] {
  const codes = Object.entries(all.total.failures).toSorted(([, one], [, other]) => other - one);
  const shown = codes
    .slice(0, codesMax)
    .map(([code], index): ChartSeries => [code, all, (sums) => sums.failures[code] ?? 0, index + 2]);
  const rest = codes.slice(codesMax).map(([code]) => code);
  const others: Figure = (sums) => rest.reduce((sum, code) => sum + (sums.failures[code] ?? 0), 0);
  return rest.length === 0 ? shown : [...shown, ["other codes", all, others, 0]];
}
