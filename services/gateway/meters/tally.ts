import { ByLabels, labelled } from "./by-labels.ts";

/** One line of a histogram as it is shown. */
export interface TallyHistogramRow {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** Counts values by size. It is called for every piece of every stream, so a count is a search and two additions. */
export class Tally {
  readonly #bounds: Float64Array;
  /** The last one is of all that is larger than every bound. */
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

  /** How many there were up to each bound, the last without one, and what they are in all. */
  get counted(): { readonly upTo: readonly number[]; readonly sum: number } {
    let all = 0;
    return { upTo: Array.from(this.#counts, (count) => (all += count)), sum: this.#sum };
  }
}

/** The tallies of one metric, by the values of its labels. Whoever asks for one sees to it that there are not too many. */
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
