import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Runtime } from "../runtimes/runtime.ts";

interface StraysOptions {
  /** How many jobs of this agent run on a runtime just now. */
  readonly ownRunning: (runtime: Runtime) => number;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/** A runtime that may still be at work for nobody, and until when that is no reason to worry. */
interface Suspicion {
  readonly worriesAtMs: number;
  /** As many as were cancelled can have gone on, and no more: a runtime may work for others too. */
  readonly cancelled: number;
  strays: number;
}

/**
 * Sees to it that a cancelled request really ended: after each cancel the runtime is asked, where it can be, until it
 * works on no more requests than this agent has running there. What it still works on after a while is told as strays.
 */
export class StrayWatch {
  readonly #options: StraysOptions;
  readonly #suspicions = new Map<Runtime, Suspicion>();
  #asking = false;

  constructor(options: StraysOptions) {
    this.#options = options;
  }

  /** Requests that runtimes go on with although nobody here waits for them. */
  get strays(): number {
    let strays = 0;
    for (const suspicion of this.#suspicions.values()) strays += suspicion.strays;
    return strays;
  }

  /** A job was cancelled for which the runtime worked on as many sequences. */
  cancelled(runtime: Runtime, sequences: number): void {
    if (runtime.working === undefined) return;
    const { clock, timing } = this.#options;
    const { strays, cancelled } = this.#suspicions.get(runtime) ?? { strays: 0, cancelled: 0 };
    const worriesAtMs = clock.now() + timing.straysWaitMs;
    this.#suspicions.set(runtime, { worriesAtMs, strays, cancelled: cancelled + sequences });
  }

  /** To be called at the pace of the beats. It costs nothing while there is no suspicion. */
  tick(): void {
    if (this.#asking || this.#suspicions.size === 0) return;
    this.#asking = true;
    const asked = [...this.#suspicions].map(([runtime, suspicion]) => this.#ask(runtime, suspicion));
    void Promise.all(asked).finally(() => {
      this.#asking = false;
    });
  }

  async #ask(runtime: Runtime, suspicion: Suspicion): Promise<void> {
    const { clock, timing, log, ownRunning } = this.#options;
    const late = new AbortController();
    const timer = clock.after(timing.runtimeAnswerMs, () => late.abort(new Error("the runtime does not answer")));
    try {
      const working = (await runtime.working?.(late.signal)) ?? 0;
      const strays = Math.min(suspicion.cancelled, Math.max(0, working - ownRunning(runtime)));
      if (this.#suspicions.get(runtime) !== suspicion) return;
      if (strays === 0) this.#suspicions.delete(runtime);
      else if (clock.now() >= suspicion.worriesAtMs) {
        if (suspicion.strays === 0) log.warn({ runtime: runtime.name, strays }, "a cancelled request did not stop");
        suspicion.strays = strays;
      }
    } catch {
      // A runtime that does not answer is no longer offered, and what it did is over when it is back.
      if (clock.now() >= suspicion.worriesAtMs) this.#suspicions.delete(runtime);
    } finally {
      timer.cancel();
    }
  }
}
