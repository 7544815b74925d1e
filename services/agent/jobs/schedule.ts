import { Passing } from "#shared/process/passing.ts";

/** So many that have nothing waiting yet are let in beyond the queue's bound: one sender is not to keep all others out. */
const newcomersMax = 16;

const none: readonly string[] = [];

/**
 * Which job runs when: lanes with a number of slots each, and one bounded queue. It only decides; whoever owns it acts
 * on what it answers.
 *
 * Within a lane senders take turns: who sends one job waits behind one of each other sender's, however many those have
 * sent. A job whose body is still arriving holds its place, but those behind it that are ready may start before it.
 */
export class Schedule {
  readonly #queueMax: number;
  readonly #lanes = new Map<string, Lane>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #running = new Passing<Waiting>();
  #submitted = 0;

  constructor(options: { queueMax: number }) {
    this.#queueMax = options.queueMax;
  }

  get running(): number {
    return this.#running.size;
  }

  get queued(): number {
    return this.#waiting.size;
  }

  runningIn(lane: string): number {
    return this.#lanes.get(lane)?.running ?? 0;
  }

  /** Takes a job in or refuses it for good. A job with `ready` may be among those to be started at once. */
  submit(job: string, turn: { lane: string; sender: string; ready: boolean }): Submitted {
    const lane = this.#laneOf(turn.lane);
    const { sender, ready } = turn;
    if (ready && this.#waiting.size === 0 && lane.free > 0) return this.#startAtOnce(job, lane, sender);
    if (this.#backlog(lane) > this.#roomFor(sender)) return { outcome: "full", start: none };
    this.#waiting.set(job, { lane, sender, ready, round: lane.nextRound(sender), order: this.#submitted++ });
    return { outcome: "taken", start: this.#startable() };
  }

  /** Of a job that nobody is before, and for which there is a slot: as nearly all are. */
  #startAtOnce(job: string, lane: Lane, sender: string): Submitted {
    const round = lane.nextRound(sender);
    this.#running.set(job, { lane, sender, ready: true, round, order: this.#submitted++ });
    lane.started(round);
    return { outcome: "taken", start: [job] };
  }

  /** The body has arrived whole. */
  makeReady(job: string): readonly string[] {
    const waiting = this.#waiting.get(job);
    if (waiting !== undefined) waiting.ready = true;
    return this.#startable();
  }

  /** The job is over, whether it ran or waited. */
  remove(job: string): readonly string[] {
    const running = this.#running.get(job);
    if (running !== undefined) {
      running.lane.running -= 1;
      this.#running.delete(job);
      return this.#startable();
    }
    const waiting = this.#waiting.get(job);
    this.#waiting.delete(job);
    if (waiting !== undefined) this.#closeUp(waiting);
    return this.#startable();
  }

  /** A job that runs has not begun after all: it waits again, in the place that it had. */
  putBack(job: string): readonly string[] {
    const running = this.#running.get(job);
    if (running !== undefined) {
      this.#running.delete(job);
      running.lane.running -= 1;
      this.#waiting.set(job, running);
    }
    return this.#startable();
  }

  /** How many jobs a lane runs at once from now on. Those that run stay. */
  resize(lane: string, slots: number): readonly string[] {
    this.#laneOf(lane).slots = slots;
    return this.#startable();
  }

  /** The places of all that wait, each counted from 1 in its own lane. */
  places(): ReadonlyMap<string, number> {
    const places = new Map<string, number>();
    const taken = new Map<Lane, number>();
    for (const [job, { lane }] of [...this.#waiting].toSorted(([, a], [, b]) => compare(a, b))) {
      const place = (taken.get(lane) ?? 0) + 1;
      taken.set(lane, place);
      places.set(job, place);
    }
    return places;
  }

  #laneOf(name: string): Lane {
    return this.#lanes.getOrInsertComputed(name, () => new Lane());
  }

  #roomFor(sender: string): number {
    for (const waiting of this.#waiting.values()) if (waiting.sender === sender) return this.#queueMax;
    return this.#queueMax + Math.min(newcomersMax, this.#queueMax);
  }

  /** How many would wait for a slot if one more came to this lane. */
  #backlog(joined: Lane): number {
    const waiting = new Map<Lane, number>([[joined, 1]]);
    for (const { lane } of this.#waiting.values()) waiting.set(lane, (waiting.get(lane) ?? 0) + 1);
    let backlog = 0;
    for (const [lane, count] of waiting) backlog += Math.max(0, count - lane.free);
    return backlog;
  }

  #startable(): readonly string[] {
    if (this.#waiting.size === 0) return none;
    const start: string[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [job, started] = next;
      this.#waiting.delete(job);
      this.#running.set(job, started);
      started.lane.started(started.round);
      start.push(job);
    }
    return start;
  }

  /** A job that is given up costs its sender no turn: his later jobs move up. */
  #closeUp(left: Waiting): void {
    for (const waiting of this.#waiting.values()) {
      if (waiting.lane === left.lane && waiting.sender === left.sender && waiting.round > left.round)
        waiting.round -= 1;
    }
    left.lane.leftOut(left.sender);
  }

  #next(): [string, Waiting] | undefined {
    let first: [string, Waiting] | undefined;
    for (const [job, waiting] of this.#waiting) {
      if (!waiting.ready || waiting.lane.free === 0) continue;
      if (first === undefined || compare(waiting, first[1]) < 0) first = [job, waiting];
    }
    return first;
  }
}

export interface Submitted {
  readonly outcome: "taken" | "full";
  /** The jobs that are to be started now. */
  readonly start: readonly string[];
}

interface Waiting {
  readonly lane: Lane;
  readonly sender: string;
  round: number;
  readonly order: number;
  ready: boolean;
}

function compare(a: Waiting, b: Waiting): number {
  return a.round - b.round || a.order - b.order;
}

/** Jobs that share slots. Each sender's jobs belong to consecutive rounds, and the earliest round runs first. */
class Lane {
  slots = 0;
  running = 0;
  #round = 0;
  readonly #lastRounds = new Map<string, number>();

  get free(): number {
    return Math.max(0, this.slots - this.running);
  }

  nextRound(sender: string): number {
    const round = Math.max(this.#round, (this.#lastRounds.get(sender) ?? -1) + 1);
    this.#lastRounds.set(sender, round);
    return round;
  }

  leftOut(sender: string): void {
    const last = this.#lastRounds.get(sender);
    if (last !== undefined) this.#lastRounds.set(sender, last - 1);
  }

  started(round: number): void {
    this.running += 1;
    this.#round = Math.max(this.#round, round);
    // A sender whose last round has begun starts anew with the present one.
    for (const [sender, last] of this.#lastRounds) if (last < this.#round) this.#lastRounds.delete(sender);
  }
}
