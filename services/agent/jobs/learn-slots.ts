/**
 * How many jobs a runtime takes at once, as it showed: one that refuses a job while others run has room for those only.
 * After a while it is tried with one more, since what took the room may be gone.
 */
export class LearntSlots {
  readonly #lanes = new Map<string, { readonly slots: number; readonly learntAtMs: number }>();

  /** The runtime refused a job as too much, beside `running` others. With none beside it, there is nothing to learn. */
  refused(lane: string, running: number, nowMs: number): void {
    if (running > 0) this.#lanes.set(lane, { slots: running, learntAtMs: nowMs });
  }

  /** How many may run at once now, of those that are configured. */
  limit(lane: string, configured: number, nowMs: number): number {
    const learnt = this.#lanes.get(lane);
    if (learnt === undefined) return configured;
    const slots = learnt.slots + Math.floor((nowMs - learnt.learntAtMs) / tryOneMoreMs);
    if (slots >= configured) this.#lanes.delete(lane);
    return Math.min(slots, configured);
  }
}

export const tryOneMoreMs = 10_000;
