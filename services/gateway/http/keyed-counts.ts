/** Counts by key, such as the open connections of each network. A key whose count is zero takes no memory. */
export class KeyedCounts {
  readonly #counts = new Map<string, number>();

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Adds to the count of a key, or takes from it if `more` is negative. Returns the new count. */
  add(key: string, more: number): number {
    const count = this.of(key) + more;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
    return count;
  }
}
