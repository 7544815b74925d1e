import type { Target } from "./open-job.ts";

interface Since {
  readonly epoch: string;
  /** Placed there and not accepted yet: no presence that has come can have them in it. */
  offered: number;
  /** Accepted since the last presence, less what has ended since. */
  moved: number;
}

/**
 * What this gateway placed on each machine and the machine's last presence does not count yet, less what has ended
 * since: so a burst spreads within the second from one presence to the next. A machine's accept and its presence come in
 * the order in which it said them, so that what was accepted before a presence is in it, and nothing else.
 */
export class PendingJobs {
  readonly #since = new Map<string, Since>();

  placed(target: Target): PendingJob {
    this.changed(target, 1, 0);
    return new PendingJob(this, target);
  }

  /** The machine has told its load. */
  told(machine: string): void {
    const since = this.#since.get(machine);
    if (since === undefined) return;
    since.moved = 0;
    if (since.offered === 0) this.#since.delete(machine);
  }

  /** May be below zero: jobs that the machine still counted have ended. */
  of({ machine, epoch }: Target): number {
    const since = this.#since.get(machine);
    return since?.epoch === epoch ? since.offered + since.moved : 0;
  }

  /** To be called by its pending jobs. */
  changed({ machine, epoch }: Target, offered: number, moved: number): void {
    let since = this.#since.get(machine);
    if (since === undefined || since.epoch < epoch) {
      since = { epoch, offered: 0, moved: 0 };
      this.#since.set(machine, since);
    }
    if (since.epoch !== epoch) return;
    since.offered += offered;
    since.moved += moved;
  }
}

/** One job that this gateway placed on a machine. */
export class PendingJob {
  readonly #all: PendingJobs;
  readonly #target: Target;
  #isAccepted = false;

  constructor(all: PendingJobs, target: Target) {
    this.#all = all;
    this.#target = target;
  }

  accepted(): void {
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    this.#all.changed(this.#target, -1, 1);
  }

  /** To be called once, however it has ended. */
  ended(): void {
    if (this.#isAccepted) this.#all.changed(this.#target, 0, -1);
    else this.#all.changed(this.#target, -1, 0);
  }
}
