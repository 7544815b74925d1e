interface Keyed {
  has(key: unknown): boolean;
  get(key: unknown): unknown;
  set(key: unknown, value: unknown): unknown;
}

/** Returns the value of a key. Inserts what `compute` returns if there is none. */
export function getOrInsertComputed(this: Keyed, key: unknown, compute: (key: unknown) => unknown): unknown {
  if (!this.has(key)) this.set(key, compute(key));
  return this.get(key);
}

/**
 * Adds the standard method `getOrInsertComputed`, which Node has since version 26, to older Nodes. Every thread calls
 * this first. `tsconfig.json` (`lib`) refuses all other parts of the language that Node 22.19 lacks.
 */
export function supplyOlderNodes(): void {
  for (const { prototype } of [Map, WeakMap]) {
    if ("getOrInsertComputed" in prototype) continue;
    const added = { value: getOrInsertComputed, writable: true, configurable: true };
    Object.defineProperty(prototype, "getOrInsertComputed", added);
  }
}
