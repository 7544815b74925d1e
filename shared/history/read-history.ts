import { z } from "zod";
import { type HistoryReader, type SlotLength, slotLengths } from "./history.ts";
import { type SeriesPart, quantile, rateBounds, Row, seriesOf, waitBounds } from "./sums.ts";

const count = z.int().nonnegative();
const percentiles = z.object({ p50: z.number(), p95: z.number() }).nullable();

const historySums = z.object({
  requests: count,
  failed: count,
  failures: z.record(z.string(), count).describe("The failed requests by the code of their fault."),
  prompt_tokens: count,
  cached_tokens: count.describe("Of the prompt tokens, those that the machine had cached."),
  completion_tokens: count,
  first_token_ms: percentiles.describe("The wait for a first token, from a histogram; null where none came."),
  tokens_per_second: percentiles.describe(
    "The tokens a second of streams after their first; null where none is known.",
  ),
});
export type HistorySums = z.infer<typeof historySums>;

const historySeries = z.object({
  total: historySums.describe("Of the whole time."),
  steps: z.array(historySums.extend({ at: z.iso.datetime() })).describe("Only steps in which a request ended."),
});
export type HistorySeries = z.infer<typeof historySeries>;

export const historyAnswer = z.object({
  since: z.iso.datetime().describe("When the first step begins."),
  until: z.iso.datetime(),
  step_seconds: z.int().positive(),
  known_since: z.iso.datetime().nullable().describe("When the site began to store sums; null if it has none yet."),
  all: historySeries,
  data: z
    .array(historySeries.extend({ of: z.string().nullable().describe("Null for all others together.") }))
    .describe("By model or machine, the busiest first."),
});

interface Asked {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly stepMs: number;
  readonly by: SeriesPart | undefined;
  /** The series to read as all of them. */
  readonly of: string;
  /** The most models or machines that are told apart. */
  readonly limit: number;
}

/** The sums of one series by the beginning of their step. */
type Steps = Map<number, Row>;

/** Reads the sums of a range. Minutes are read unless the steps are whole hours. */
export async function readHistory(history: HistoryReader, asked: Asked): Promise<z.infer<typeof historyAnswer>> {
  const { untilMs, stepMs, by, of, limit } = asked;
  const fromMs = Math.floor(asked.sinceMs / stepMs) * stepMs;
  const length = slotLengthOf(stepMs);
  const series = new Map<string, Steps>();
  await history.visit({ length, fromMs, untilMs }, (at, { rows }) => {
    const step = Math.floor(at / stepMs) * stepMs;
    for (const [name, row] of rows) {
      if (name !== of && (by === undefined || !(name === by || name.startsWith(`${by}:`)))) continue;
      addTo(
        series.getOrInsertComputed(name, () => new Map()),
        step,
        row,
      );
    }
  });
  const sinceMs = await history.since();
  const all = series.get(of) ?? new Map<number, Row>();
  series.delete(of);
  return {
    since: new Date(fromMs).toISOString(),
    until: new Date(untilMs).toISOString(),
    step_seconds: stepMs / 1_000,
    known_since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    all: showSeries(all),
    data: by === undefined ? [] : busiest(series, by, limit),
  };
}

export function slotLengthOf(stepMs: number): SlotLength {
  return stepMs % slotLengths.hour.ms === 0 ? slotLengths.hour : slotLengths.minute;
}

function addTo(steps: Steps, at: number, row: Row): void {
  steps.getOrInsertComputed(at, () => new Row()).merge(row);
}

/** Returns the busiest models or machines, and all others together. */
function busiest(series: ReadonlyMap<string, Steps>, by: SeriesPart, limit: number) {
  const requestsOf = (steps: Steps) => steps.values().reduce((sum, { counts: [requests = 0] }) => sum + requests, 0);
  const ranked = [...series].toSorted(([, one], [, other]) => requestsOf(other) - requestsOf(one));
  const named = ranked.filter(([name]) => name !== seriesOf(by));
  const others: Steps = new Map();
  for (const [name, steps] of series) {
    if (named.slice(0, limit).some(([each]) => each === name)) continue;
    for (const [at, row] of steps) addTo(others, at, row);
  }
  const shown = named.slice(0, limit).map(([name, steps]) => ({ of: name.slice(by.length + 1), ...showSeries(steps) }));
  return others.size === 0 ? shown : [...shown, { of: null, ...showSeries(others) }];
}

function showSeries(steps: Steps): HistorySeries {
  const total = new Row();
  for (const row of steps.values()) total.merge(row);
  const sorted = [...steps].toSorted(([one], [other]) => one - other);
  return {
    total: showRow(total),
    steps: sorted.map(([at, row]) => ({ at: new Date(at).toISOString(), ...showRow(row) })),
  };
}

function showRow({ counts, failures, waits, rates }: Row): HistorySums {
  const [requests = 0, prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0] = counts;
  return {
    requests,
    failed: [...failures.values()].reduce((sum, each) => sum + each, 0),
    failures: Object.fromEntries(failures),
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    first_token_ms: percentilesOf(waits, waitBounds),
    tokens_per_second: percentilesOf(rates, rateBounds),
  };
}

function percentilesOf(counts: readonly number[], bounds: readonly number[]) {
  const [p50, p95] = [0.5, 0.95].map((share) => quantile(counts, bounds, share));
  return p50 == null || p95 == null ? null : { p50: tenths(p50), p95: tenths(p95) };
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
