import type { Target } from "./open-jobs.ts";

/**
 * What this gateway placed on each machine since the machine last told its load, less what has ended since: so a burst
 * spreads within the second from one presence to the next.
 */
export class PendingJobs {
  readonly #since = new Map<string, { readonly epoch: string; jobs: number }>();

  placed(target: Target): void {
    this.#add(target, 1);
  }

  ended(target: Target): void {
    this.#add(target, -1);
  }

  /** The machine has told its load, and all that was placed is in it. */
  told(machine: string): void {
    this.#since.delete(machine);
  }

  /** May be below zero: jobs that the machine still counted have ended. */
  of({ machine, epoch }: Target): number {
    const since = this.#since.get(machine);
    return since?.epoch === epoch ? since.jobs : 0;
  }

  #add({ machine, epoch }: Target, jobs: number): void {
    const since = this.#since.get(machine);
    if (since === undefined || since.epoch < epoch) this.#since.set(machine, { epoch, jobs });
    else if (since.epoch === epoch) since.jobs += jobs;
  }
}
