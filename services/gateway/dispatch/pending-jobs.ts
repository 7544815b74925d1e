import type { Target } from "./open-job.ts";

interface Since {
  readonly epoch: string;
  /** Placed there and not accepted yet: no presence that has come can have them in it. */
  offered: number;
  /** Accepted since the last presence, less what has ended since. */
  moved: number;
}

/** One job that this gateway placed on a machine. */
export interface PendingJob {
  accepted(): void;
  /** To be called once, however it has ended. */
  ended(): void;
}

/**
 * What this gateway placed on each machine and the machine's last presence does not count yet, less what has ended
 * since: so a burst spreads within the second from one presence to the next. A machine's accept and its presence come in
 * the order in which it said them, so that what was accepted before a presence is in it, and nothing else.
 */
export class PendingJobs {
  readonly #since = new Map<string, Since>();

  placed(target: Target): PendingJob {
    let isAccepted = false;
    this.#change(target, { offered: 1, moved: 0 });
    return {
      accepted: () => {
        if (isAccepted) return;
        isAccepted = true;
        this.#change(target, { offered: -1, moved: 1 });
      },
      ended: () => this.#change(target, isAccepted ? { offered: 0, moved: -1 } : { offered: -1, moved: 0 }),
    };
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

  #change({ machine, epoch }: Target, by: { readonly offered: number; readonly moved: number }): void {
    let since = this.#since.get(machine);
    if (since === undefined || since.epoch < epoch) {
      since = { epoch, offered: 0, moved: 0 };
      this.#since.set(machine, since);
    }
    if (since.epoch !== epoch) return;
    since.offered += by.offered;
    since.moved += by.moved;
  }
}
