interface Entry<Value> {
  readonly name: string;
  value: Value;
  /** Of those that fall into the same place, the one that came before. */
  next: Entry<Value> | undefined;
}

const placesMin = 16;
/** Names end in chance: so many characters of it tell nearly all of them apart. */
const charactersTold = 5;

/**
 * What comes and goes with every request, by a name that comes only once and ends in a random token. A `Map` would do but
 * for its garbage: each time that it makes room it leaves a table behind that points at its next one, and one of those that
 * grew old keeps all after it alive, with what was in them. A third of all that requests allocate would be copied twice and
 * die old. An object would do but for its names: each becomes one of the texts that the engine knows by heart.
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
    // What is gone keeps nothing alive.
    entry.next = undefined;
    this.#size -= 1;
  }

  /** All that are there now; what comes and goes meanwhile changes nothing in it. */
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

/** `count` is a power of two. */
function placeOf(name: string, count: number): number {
  let told = 0;
  for (let at = Math.max(0, name.length - charactersTold); at < name.length; at += 1) {
    told = Math.imul(told, 31) + name.charCodeAt(at);
  }
  return told & (count - 1);
}
