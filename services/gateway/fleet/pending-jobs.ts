import type { Target } from "./roster.ts";

interface Since {
  readonly epoch: string;
  /** Jobs placed there and not accepted yet. No presence received so far can include them. */
  offered: number;
  /** Jobs accepted since the last presence, less those that ended since. */
  moved: number;
}

/**
 * Counts this gateway's jobs on each machine that its last presence does not count yet, less those that ended since. A
 * burst therefore spreads over machines within the second between two presences. A machine's accepts and presences
 * arrive in the order in which it sent them. A presence therefore includes exactly the jobs accepted before it.
 */
export class PendingJobs {
  readonly #since = new Map<string, Since>();

  placed(target: Target): PendingJob {
    this.changed(target, 1, 0);
    return new PendingJob(this, target);
  }

  /** Called when a presence of the machine arrives and reports its load. */
  told(machine: string): void {
    const since = this.#since.get(machine);
    if (since === undefined) return;
    since.moved = 0;
    if (since.offered === 0) this.#since.delete(machine);
  }

  /** Returns the pending jobs of a machine. The number is negative when jobs ended that the machine still counted. */
  of({ machine, epoch }: Target): number {
    const since = this.#since.get(machine);
    return since?.epoch === epoch ? since.offered + since.moved : 0;
  }

  /** Called by `PendingJob` only. */
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

/** A job that this gateway placed on a machine. */
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

  /** Called once, however the job ended. */
  ended(): void {
    if (this.#isAccepted) this.#all.changed(this.#target, 0, -1);
    else this.#all.changed(this.#target, -1, 0);
  }
}
