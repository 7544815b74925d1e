/**
 * Which job runs when: a number of slots and a bounded queue, first come first served. It only decides; whoever owns
 * it acts on what it answers. A job whose body is still arriving holds its place in the queue, but those behind it
 * that are ready may start before it.
 */
export class Schedule {
  #slots: number;
  readonly #queueMax: number;
  readonly #running = new Set<string>();
  readonly #waiting = new Map<string, { ready: boolean }>();

  constructor(options: { slots: number; queueMax: number }) {
    this.#slots = options.slots;
    this.#queueMax = options.queueMax;
  }

  get slots(): number {
    return this.#slots;
  }

  get running(): number {
    return this.#running.size;
  }

  get queued(): number {
    return this.#waiting.size;
  }

  /** Takes a job in or refuses it for good. A job with `ready` may be among those to be started at once. */
  submit(job: string, options: { ready: boolean }): Submitted {
    const free = Math.max(0, this.#slots - this.#running.size);
    if (this.#waiting.size >= this.#queueMax + free) return { outcome: "full" };
    this.#waiting.set(job, { ready: options.ready });
    return { outcome: "taken", start: this.#startable() };
  }

  /** The body has arrived whole. */
  makeReady(job: string): readonly string[] {
    const waiting = this.#waiting.get(job);
    if (waiting !== undefined) waiting.ready = true;
    return this.#startable();
  }

  /** The job is over, whether it ran or waited. */
  remove(job: string): readonly string[] {
    this.#running.delete(job);
    this.#waiting.delete(job);
    return this.#startable();
  }

  /** Another runtime takes another number of jobs at once. Those that run stay. */
  resize(slots: number): readonly string[] {
    this.#slots = slots;
    return this.#startable();
  }

  /** The places of all that wait, counted from 1. */
  places(): ReadonlyMap<string, number> {
    const places = new Map<string, number>();
    for (const job of this.#waiting.keys()) places.set(job, places.size + 1);
    return places;
  }

  #startable(): readonly string[] {
    const start: string[] = [];
    for (const [job, { ready }] of this.#waiting) {
      if (this.#running.size >= this.#slots) break;
      if (!ready) continue;
      this.#waiting.delete(job);
      this.#running.add(job);
      start.push(job);
    }
    return start;
  }
}

export type Submitted = { readonly outcome: "taken"; readonly start: readonly string[] } | { readonly outcome: "full" };
