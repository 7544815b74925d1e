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

export const tryOneMoreMs = 10_000;
