import { abortAfter } from "#shared/process/clock.ts";
import type { AgentContext } from "../context.ts";
import type { Runtime } from "../runtimes/runtime.ts";

interface StraysOptions extends AgentContext {
  /** Returns how many sequences a runtime works on for jobs of this agent. */
  readonly ownRunning: (runtime: Runtime) => number;
}

/** A runtime that may still work on cancelled requests. Its strays are not reported before `worriesAtMs`. */
interface Suspicion {
  readonly worriesAtMs: number;
  /** Cancelled sequences. No more than these can be strays: a runtime may work for other clients too. */
  readonly cancelled: number;
  strays: number;
}

/**
 * Checks that cancelled requests really end. After each cancel it polls a runtime that can report its work. It stops
 * when the runtime works on no more requests than this agent runs there. Requests that still go on after `straysWaitMs`
 * are reported as strays.
 */
export class StrayWatch {
  readonly #options: StraysOptions;
  readonly #suspicions = new Map<Runtime, Suspicion>();
  #asking = false;

  constructor(options: StraysOptions) {
    this.#options = options;
  }

  /** Requests that runtimes go on with although no job here waits for them. */
  get strays(): number {
    let strays = 0;
    for (const suspicion of this.#suspicions.values()) strays += suspicion.strays;
    return strays;
  }

  /** Notes a cancelled job for which the runtime worked on this many sequences. */
  cancelled(runtime: Runtime, sequences: number): void {
    if (runtime.working === undefined) return;
    const { clock, timing } = this.#options;
    const { strays, cancelled } = this.#suspicions.get(runtime) ?? { strays: 0, cancelled: 0 };
    const worriesAtMs = clock.now() + timing.straysWaitMs;
    this.#suspicions.set(runtime, { worriesAtMs, strays, cancelled: cancelled + sequences });
  }

  /** Polls the suspected runtimes. The caller calls it once per beat; without a suspicion it does nothing. */
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
    using late = abortAfter(clock, timing.runtimeAnswerMs, () => new Error("the runtime does not answer"));
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
      // A runtime that does not answer is no longer offered, and its work is over when it is back.
      if (clock.now() >= suspicion.worriesAtMs) this.#suspicions.delete(runtime);
    }
  }
}
