import type { Clock } from "#shared/process/clock.ts";
import type { AgentJob } from "./agent-job.ts";

/**
 * Holds acceptances for a moment before they are sent. Any frame of a job tells its gateway that the job was accepted.
 * A job that is answered within this moment therefore needs no accept frame.
 */
export class HeldAccepts {
  readonly #clock: Clock;
  readonly #holdMs: number;
  readonly #tell: (job: AgentJob) => void;
  /**
   * `#due` holds the jobs from before the last look, `#held` those since. Each job waits for one look at least and two
   * at most.
   */
  #due: AgentJob[] = [];
  #held: AgentJob[] = [];
  #looking = false;

  constructor(options: { clock: Clock; holdMs: number; tell: (job: AgentJob) => void }) {
    this.#clock = options.clock;
    this.#holdMs = options.holdMs;
    this.#tell = options.tell;
  }

  hold(job: AgentJob): void {
    if (this.#holdMs === 0) this.#tell(job);
    else {
      this.#held.push(job);
      this.#lookSoon();
    }
  }

  #lookSoon(): void {
    if (this.#looking) return;
    this.#looking = true;
    this.#clock.after(this.#holdMs, () => this.#look());
  }

  #look(): void {
    this.#looking = false;
    for (const job of this.#due) if (job.frames.silent) this.#tell(job);
    this.#due = this.#held;
    this.#held = [];
    if (this.#due.length > 0) this.#lookSoon();
  }
}
