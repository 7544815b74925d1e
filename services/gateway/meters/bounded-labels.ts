/** The shared label of all values that came after the limit was reached. */
export const otherLabel = "other";

/**
 * Bounds the values of a label. Each value is kept for good, since a counter must not go back. Above the limit, new
 * values share `otherLabel`. A client that invents names cannot fill the memory of systems that store metrics.
 */
export class BoundedLabels {
  readonly #max: number;
  readonly #values = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(value: string): boolean {
    return this.#values.has(value);
  }

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= this.#max) return otherLabel;
    this.#values.add(value);
    return value;
  }
}
