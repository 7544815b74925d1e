import { setImmediate } from "node:timers/promises";
import type { Clock, Timer } from "#shared/process/clock.ts";

interface Due {
  readonly run: () => void;
  readonly everyMs: number | undefined;
  dueAtMs: number;
}

/** Time that stands still until a test turns it. Wall time goes along, and can be set apart like on a real host. */
export class TurnableClock implements Clock {
  #nowMs: number;
  #wallAheadMs: number;
  readonly #timers = new Set<Due>();

  constructor(options: { nowMs?: number; wallMs?: number } = {}) {
    this.#nowMs = options.nowMs ?? 0;
    this.#wallAheadMs = (options.wallMs ?? Date.UTC(2026, 0, 1)) - this.#nowMs;
  }

  /** How many timers wait; zero after a part was stopped means that it left none behind. */
  get timersWaiting(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#nowMs;
  }

  wall(): number {
    return this.#nowMs + this.#wallAheadMs;
  }

  /** Sets what the host believes, as an operator or a time server does; no timer notices. */
  setWall(wallMs: number): void {
    this.#wallAheadMs = wallMs - this.#nowMs;
  }

  after(delayMs: number, run: () => void): Timer {
    return this.#add({ run, everyMs: undefined, dueAtMs: this.#nowMs + Math.max(delayMs, 0) });
  }

  /** Like the system's timers, an interval is at least 1 ms: one of 0 would never let time pass. */
  every(intervalMs: number, run: () => void): Timer {
    const everyMs = Math.max(intervalMs, 1);
    return this.#add({ run, everyMs, dueAtMs: this.#nowMs + everyMs });
  }

  /** Lets time pass and runs what falls due, in order of time and then of setting, also what those runs set anew. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    while (this.#runNext(endMs));
    this.#nowMs = endMs;
  }

  /** Lets time pass while no timer runs, as for a process that stands still: they run with the next `advance`. */
  standStill(forMs: number): void {
    this.#nowMs += forMs;
  }

  /** Like `advance`, for code that awaits: promises settle before time moves on, so that what they set counts too. */
  async advanceAwaiting(byMs: number): Promise<void> {
    const endMs = this.#nowMs + byMs;
    do await setImmediate();
    while (this.#runNext(endMs));
    this.#nowMs = endMs;
  }

  #add(due: Due): Timer {
    this.#timers.add(due);
    return { cancel: () => void this.#timers.delete(due) };
  }

  #runNext(endMs: number): boolean {
    let next: Due | undefined;
    for (const due of this.#timers) {
      if (due.dueAtMs <= endMs && (next === undefined || due.dueAtMs < next.dueAtMs)) next = due;
    }
    if (next === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, next.dueAtMs);
    this.#timers.delete(next);
    if (next.everyMs !== undefined) {
      next.dueAtMs += next.everyMs;
      this.#timers.add(next);
    }
    next.run();
    return true;
  }
}
