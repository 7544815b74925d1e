import { ByLabels, labelled } from "./by-labels.ts";

/** One line of a histogram in the text for scrapers. */
export interface TallyHistogramRow {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** Counts values by size. Every piece of every stream is counted, so a count is a search and two additions. */
export class Tally {
  readonly #bounds: Float64Array;
  /** The last element counts the values above every bound. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: Float64Array) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  count(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** The number of values up to each bound, the last without a bound, and the sum of all values. */
  get counted(): { readonly upTo: readonly number[]; readonly sum: number } {
    let all = 0;
    return { upTo: Array.from(this.#counts, (count) => (all += count)), sum: this.#sum };
  }
}

/** The tallies of one metric, by the values of its labels. The caller bounds the number of combinations. */
export class TallyFamily {
  readonly #bounds: Float64Array;
  readonly #labels: readonly string[];
  readonly #tallies: ByLabels<Tally>;

  constructor(bounds: readonly number[], labels: readonly string[]) {
    this.#bounds = Float64Array.from(bounds);
    this.#labels = labels;
    this.#tallies = new ByLabels(() => new Tally(this.#bounds));
  }

  of(...values: readonly string[]): Tally {
    return this.#tallies.of(values);
  }

  rows(name: string): readonly TallyHistogramRow[] {
    return this.#tallies.all.flatMap(({ values, kept: { counted } }) => {
      const labels = labelled(this.#labels, values);
      const all = counted.upTo.at(-1) ?? 0;
      return [
        ...counted.upTo.map((count, at) => ({
          metricName: `${name}_bucket`,
          labels: { le: this.#bounds[at] ?? "+Inf", ...labels },
          value: count,
        })),
        { metricName: `${name}_sum`, labels, value: counted.sum },
        { metricName: `${name}_count`, labels, value: all },
      ];
    });
  }
}
