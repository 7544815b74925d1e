interface Entry<Value> {
  readonly name: string;
  value: Value;
  /** The next entry of the same bucket; it was added earlier. */
  next: Entry<Value> | undefined;
}

const placesMin = 16;
/** Names end in random characters; the last five are the hash. */
const charactersTold = 5;

/**
 * A map for entries that live as long as a request. Each name is used only once and ends in a random token.
 *
 * A `Map` leaves garbage behind: each time that it grows, its old table points at the next one. An old table in the old
 * generation keeps all later tables and their entries alive. A third of all bytes that requests allocate would be
 * copied twice and die old. A plain object would make the engine internalise each name.
 */
export class Passing<Value> {
  #places: (Entry<Value> | undefined)[] = placesOf(placesMin);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  get(name: string): Value | undefined {
    return this.#find(name)?.value;
  }

  set(name: string, value: Value): void {
    const found = this.#find(name);
    if (found !== undefined) {
      found.value = value;
      return;
    }
    if (this.#size >= this.#places.length) this.#grow();
    this.#put({ name, value, next: undefined });
    this.#size += 1;
  }

  delete(name: string): void {
    const place = placeOf(name, this.#places.length);
    let before: Entry<Value> | undefined;
    let entry = this.#places[place];
    while (entry !== undefined && entry.name !== name) {
      before = entry;
      entry = entry.next;
    }
    if (entry === undefined) return;
    if (before === undefined) this.#places[place] = entry.next;
    else before.next = entry.next;
    // A removed entry must not keep others alive.
    entry.next = undefined;
    this.#size -= 1;
  }

  /** Returns a snapshot of all values; later changes do not affect it. */
  values(): readonly Value[] {
    const values: Value[] = [];
    for (const first of this.#places) {
      for (let entry = first; entry !== undefined; entry = entry.next) values.push(entry.value);
    }
    return values;
  }

  #find(name: string): Entry<Value> | undefined {
    let entry = this.#places[placeOf(name, this.#places.length)];
    while (entry !== undefined && entry.name !== name) entry = entry.next;
    return entry;
  }

  #put(entry: Entry<Value>): void {
    const place = placeOf(entry.name, this.#places.length);
    entry.next = this.#places[place];
    this.#places[place] = entry;
  }

  #grow(): void {
    const before = this.#places;
    this.#places = placesOf(before.length * 2);
    for (const first of before) {
      for (let entry = first; entry !== undefined;) {
        const { next } = entry;
        this.#put(entry);
        entry = next;
      }
    }
  }
}

function placesOf<Value>(count: number): (Entry<Value> | undefined)[] {
  return Array.from({ length: count }, () => undefined);
}

/** Returns the bucket of a name. `count` is a power of two. */
function placeOf(name: string, count: number): number {
  let told = 0;
  for (let at = Math.max(0, name.length - charactersTold); at < name.length; at += 1) {
    told = Math.imul(told, 31) + name.charCodeAt(at);
  }
  return told & (count - 1);
}
