/**
 * Sums of ended requests: in total, by model and by machine. Pure. Percentiles do not add up and counts of a histogram do, so
 * that those are stored.
 */

/** An ended request, as its usage is booked. A request that resumes an answer counts no second time. */
export interface EndedSums {
  readonly requests: number;
  readonly failed: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly answered: number;
  readonly firstTokenMs: number;
  readonly durationMs: number;
  /** Null where the client may have invented the name. */
  readonly model: string | null;
}

export interface EndedAnswer {
  readonly machine: string | undefined;
  readonly cachedTokens: number | undefined;
  /** `ok`, or the code of the fault in which the request ended. */
  readonly code: string;
}

/** Upper bounds of waits for the first token, in milliseconds. Longer waits have a count of their own. */
export const waitBounds = [10, 25, 50, 100, 200, 350, 500, 1e3, 2e3, 4e3, 8e3, 15e3, 30e3, 60e3, 12e4, 3e5] as const;
/** Upper bounds of tokens a second after the first token. */
export const rateBounds = [1, 2, 4, 7, 11, 16, 23, 32, 45, 60, 80, 110, 160, 250, 500, 1e3] as const;

export const seriesParts = ["model", "machine"] as const;
export type SeriesPart = (typeof seriesParts)[number];
/** Models and machines that have sums of their own in a minute or an hour. Others are added up together. */
export const seriesMax = 64;
/** The series of all requests. */
export const totalSeries = "";

/** The series of a model or machine, or of the others together. */
export function seriesOf(part: SeriesPart, name?: string): string {
  return name === undefined ? part : `${part}:${name}`;
}

const waitsAt = 4;
const ratesAt = waitsAt + waitBounds.length + 1;
const countsLength = ratesAt + rateBounds.length + 1;

/** The sums of one series. */
export class Row {
  /** Requests, prompt tokens, cached ones of these, and answer tokens; then the waits and the rates by their bounds. */
  readonly counts: number[];
  /** Failed requests by their code. */
  readonly failures: Map<string, number>;

  constructor(counts: number[] = Array<number>(countsLength).fill(0), failures = new Map<string, number>()) {
    this.counts = counts;
    this.failures = failures;
  }

  get waits(): readonly number[] {
    return this.counts.slice(waitsAt, ratesAt);
  }

  get rates(): readonly number[] {
    return this.counts.slice(ratesAt);
  }

  bump(index: number, count: number): void {
    this.counts[index] = (this.counts[index] ?? 0) + count;
  }

  fail(code: string, count: number): void {
    this.failures.set(code, (this.failures.get(code) ?? 0) + count);
  }

  merge({ counts, failures }: Row): void {
    for (const [index, count] of counts.entries()) this.bump(index, count);
    for (const [code, count] of failures) this.fail(code, count);
  }
}

/** The sums of a minute or an hour by their series. */
export class Sums {
  readonly rows = new Map<string, Row>();
  readonly #named = { model: 0, machine: 0 };

  add(ended: EndedSums, { machine, cachedTokens = 0, code }: EndedAnswer): void {
    const { requests, failed, promptTokens, completionTokens, answered, firstTokenMs, durationMs, model } = ended;
    const wait = answered > 0 ? waitsAt + bucketOf(waitBounds, firstTokenMs) : undefined;
    const answerMs = durationMs - firstTokenMs;
    const hasRate = answered > 0 && completionTokens > 1 && answerMs > 0;
    const rate = hasRate ? ratesAt + bucketOf(rateBounds, ((completionTokens - 1) * 1_000) / answerMs) : undefined;
    for (const row of [
      this.rowOf(totalSeries),
      model === null ? undefined : this.rowOf(seriesOf("model", model)),
      machine === undefined ? undefined : this.rowOf(seriesOf("machine", machine)),
    ]) {
      if (row === undefined) continue;
      row.bump(0, requests);
      row.bump(1, promptTokens);
      row.bump(2, Math.min(cachedTokens, promptTokens));
      row.bump(3, completionTokens);
      if (wait !== undefined) row.bump(wait, 1);
      if (rate !== undefined) row.bump(rate, 1);
      if (failed > 0) row.fail(code, failed);
    }
  }

  merge(other: Sums): void {
    for (const [series, row] of other.rows) this.rowOf(series).merge(row);
  }

  /** Returns the row of a series, or that of the others once `seriesMax` models or machines have one. */
  rowOf(series: string): Row {
    const known = this.rows.get(series);
    if (known !== undefined) return known;
    const part = seriesParts.find((each) => series.startsWith(`${each}:`));
    if (part !== undefined && this.#named[part] === seriesMax) return this.rowOf(seriesOf(part));
    if (part !== undefined) this.#named[part] += 1;
    const row = new Row();
    this.rows.set(series, row);
    return row;
  }
}

function bucketOf(bounds: readonly number[], value: number): number {
  let index = 0;
  while (value > (bounds[index] ?? Infinity)) index += 1;
  return index;
}

/**
 * Returns the value below which this share of a histogram lies, as if values were spread evenly between two bounds. Null for
 * an empty one. Values beyond the last bound count as that bound.
 */
export function quantile(counts: readonly number[], bounds: readonly number[], share: number): number | null {
  let left = share * counts.reduce((sum, count) => sum + count, 0);
  if (left === 0) return null;
  for (const [index, count] of counts.entries()) {
    const [low, high] = [bounds[index - 1] ?? 0, bounds[index] ?? bounds.at(-1) ?? 0];
    if (count >= left) return low + ((high - low) * left) / count;
    left -= count;
  }
  return bounds.at(-1) ?? null;
}
