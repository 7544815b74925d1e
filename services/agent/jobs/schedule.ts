/**
 * Bounds how many jobs are queued beyond `queueMax` for senders that have no job waiting. One sender cannot keep all
 * others out.
 */
const newcomersMax = 16;

const none: readonly never[] = [];

/**
 * Decides which job runs when: lanes with a number of slots each, and one bounded queue. It starts nothing itself; its
 * owner starts the jobs that it returns.
 *
 * Within a lane senders take turns. A sender of one job waits behind one job of each other sender, however many those
 * have sent. A job that is not ready keeps its position, but ready jobs behind it may start first.
 */
export class Schedule<Job = string> {
  readonly waiting = new Map<Job, Waiting>();
  readonly running = new Map<Job, Waiting>();
  readonly #queueMax: number;
  readonly #lanes = new Map<string, Lane>();
  #submitted = 0;

  constructor(options: { queueMax: number }) {
    this.#queueMax = options.queueMax;
  }

  runningIn(lane: string): number {
    return this.#lanes.get(lane)?.running ?? 0;
  }

  /**
   * Queues a job, and returns the jobs to start now: a `ready` job may be among them. Returns undefined if the queue is full.
   */
  submit(job: Job, turn: { lane: string; sender: string; ready: boolean }): readonly Job[] | undefined {
    const lane = this.#laneOf(turn.lane);
    const { sender, ready } = turn;
    if (this.#backlog(lane) > this.#roomFor(sender)) return undefined;
    this.waiting.set(job, { lane, sender, ready, round: lane.nextRound(sender), order: this.#submitted++ });
    return this.#startable();
  }

  /** Marks whether a waiting job can begin: its body is here, and its model is in memory. */
  setReady(job: Job, ready: boolean): readonly Job[] {
    const waiting = this.waiting.get(job);
    if (waiting !== undefined) waiting.ready = ready;
    return this.#startable();
  }

  /** Removes a job that is over, whether it ran or waited. */
  remove(job: Job): readonly Job[] {
    const [running, waiting] = [this.running.get(job), this.waiting.get(job)];
    this.running.delete(job);
    this.waiting.delete(job);
    if (running !== undefined) running.lane.running -= 1;
    else if (waiting !== undefined) this.#closeUp(waiting);
    return this.#startable();
  }

  /** Puts a running job back in the queue, at the position that it had. */
  putBack(job: Job): readonly Job[] {
    const running = this.running.get(job);
    if (running !== undefined) {
      this.running.delete(job);
      running.lane.running -= 1;
      this.waiting.set(job, running);
    }
    return this.#startable();
  }

  /** Sets how many jobs a lane runs at once. Running jobs stay. */
  resize(lane: string, slots: number): readonly Job[] {
    this.#laneOf(lane).slots = slots;
    return this.#startable();
  }

  /** Returns the positions of all waiting jobs, each counted from 1 in its own lane. */
  positions(): ReadonlyMap<Job, number> {
    const positions = new Map<Job, number>();
    const taken = new Map<Lane, number>();
    for (const [job, { lane }] of [...this.waiting].toSorted(([, a], [, b]) => compare(a, b))) {
      const position = (taken.get(lane) ?? 0) + 1;
      taken.set(lane, position);
      positions.set(job, position);
    }
    return positions;
  }

  #laneOf(name: string): Lane {
    return this.#lanes.getOrInsertComputed(name, () => new Lane());
  }

  #roomFor(sender: string): number {
    for (const waiting of this.waiting.values()) if (waiting.sender === sender) return this.#queueMax;
    return this.#queueMax + Math.min(newcomersMax, this.#queueMax);
  }

  /** Returns how many jobs would wait for a slot if one more joined this lane. */
  #backlog(joined: Lane): number {
    const waiting = new Map<Lane, number>([[joined, 1]]);
    for (const { lane } of this.waiting.values()) waiting.set(lane, (waiting.get(lane) ?? 0) + 1);
    let backlog = 0;
    for (const [lane, count] of waiting) backlog += Math.max(0, count - lane.free);
    return backlog;
  }

  #startable(): readonly Job[] {
    if (this.waiting.size === 0) return none;
    const start: Job[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const [job, started] = next;
      this.waiting.delete(job);
      this.running.set(job, started);
      started.lane.started(started.round);
      start.push(job);
    }
    return start;
  }

  /** Moves up the sender's later jobs, so that a job that is given up costs the sender no turn. */
  #closeUp(left: Waiting): void {
    for (const waiting of this.waiting.values()) {
      if (waiting.lane === left.lane && waiting.sender === left.sender && waiting.round > left.round)
        waiting.round -= 1;
    }
    left.lane.leftOut(left.sender);
  }

  #next(): [Job, Waiting] | undefined {
    let first: [Job, Waiting] | undefined;
    for (const [job, waiting] of this.waiting) {
      if (!waiting.ready || waiting.lane.free === 0) continue;
      if (first === undefined || compare(waiting, first[1]) < 0) first = [job, waiting];
    }
    return first;
  }
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
    // A sender whose last round has begun starts again at the current round.
    for (const [sender, last] of this.#lastRounds) if (last < this.#round) this.#lastRounds.delete(sender);
  }
}

/**
 * Learns how many jobs a runtime takes at once. A runtime that refuses a job while others run has room for those only.
 * Every `tryOneMoreMs` it is tried with one more job, since the work that took the room may be gone.
 */
export class LearntSlots {
  readonly #lanes = new Map<string, { readonly slots: number; readonly learntAtMs: number }>();

  /**
   * Notes that the runtime refused a job as too much beside `running` others. With no others there is nothing to learn.
   */
  refused(lane: string, running: number, nowMs: number): void {
    if (running > 0) this.#lanes.set(lane, { slots: running, learntAtMs: nowMs });
  }

  /** Returns how many jobs may run at once now, at most the configured number. */
  limit(lane: string, configured: number, nowMs: number): number {
    const learnt = this.#lanes.get(lane);
    if (learnt === undefined) return configured;
    const slots = learnt.slots + Math.floor((nowMs - learnt.learntAtMs) / tryOneMoreMs);
    if (slots >= configured) this.#lanes.delete(lane);
    return Math.min(slots, configured);
  }
}

const tryOneMoreMs = 10_000;
