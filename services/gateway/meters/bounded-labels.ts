/** What all values are called together that came when there were enough. */
export const otherLabel = "other";

/**
 * The values that a label has had. Each is kept for good, since a counter must not go back, and there is only room for
 * so many: whoever invents names cannot fill the memory of those who store metrics.
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
