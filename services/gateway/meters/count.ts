import { ByLabels, labelled } from "./by-labels.ts";

/** A counter. Every request adds to it, so it is a plain number until it is shown. */
export class Count {
  #number = 0;

  get number(): number {
    return this.#number;
  }

  add(more: number): void {
    this.#number += more;
  }
}

/** The counts of one metric, by the values of its labels. */
export class CountFamily {
  readonly #labels: readonly string[];
  readonly #counts = new ByLabels(() => new Count());

  constructor(labels: readonly string[]) {
    this.#labels = labels;
  }

  of(...values: readonly string[]): Count {
    return this.#counts.of(values);
  }

  rows(): readonly { readonly labels: Readonly<Record<string, string>>; readonly number: number }[] {
    return this.#counts.all.map(({ values, kept }) => ({
      labels: labelled(this.#labels, values),
      number: kept.number,
    }));
  }
}
