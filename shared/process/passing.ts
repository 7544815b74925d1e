/**
 * What comes and goes with every request, by a name that comes only once. A `Map` would do but for its garbage: each time
 * that it makes room it leaves a table behind that points at its next one, and one of those that grew old keeps all after
 * it alive, with what was in them. A third of all that requests allocate would be copied twice and die old.
 */
export class Passing<Value> {
  readonly #all: Record<string, Value> = Object.create(null) as Record<string, Value>;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(name: string): boolean {
    return this.#all[name] !== undefined;
  }

  get(name: string): Value | undefined {
    return this.#all[name];
  }

  set(name: string, value: Value): void {
    if (!this.has(name)) this.#size += 1;
    this.#all[name] = value;
  }

  delete(name: string): void {
    if (!this.has(name)) return;
    this.#size -= 1;
    delete this.#all[name];
  }

  /** All that are there now; what comes and goes meanwhile changes nothing in it. */
  values(): readonly Value[] {
    return Object.values(this.#all);
  }
}
