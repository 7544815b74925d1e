import type { Presence } from "#shared/protocol/presence.ts";

/** The reason why a machine that announces itself is not taken into the roster. */
export type LeftOutCause = "older" | "other-scale";

export interface LeftOutMachine {
  readonly presence: Presence;
  readonly cause: LeftOutCause;
  readonly heardAtMs: number;
}

/**
 * The most left-out machines that are remembered. Beyond it the machines that were heard least lately are forgotten.
 */
export const leftOutMax = 1_000;

/** The machines that announce themselves and get no work for it, kept for reports to operators. */
export class LeftOut {
  readonly #forgetMs: number;
  /** The left-out machines by machine and boot, in the order in which they were last heard. */
  readonly #machines = new Map<string, LeftOutMachine>();

  constructor({ forgetMs }: { readonly forgetMs: number }) {
    this.#forgetMs = forgetMs;
  }

  heard(presence: Presence, cause: LeftOutCause, nowMs: number): void {
    const boot = `${presence.machine} ${presence.epoch}`;
    this.#machines.delete(boot);
    if (presence.state === "gone") return;
    this.#machines.set(boot, { presence, cause, heardAtMs: nowMs });
    for (const [oldest, { heardAtMs }] of this.#machines) {
      if (this.#machines.size <= leftOutMax && nowMs - heardAtMs <= this.#forgetMs) return;
      this.#machines.delete(oldest);
    }
  }

  all(nowMs: number): readonly LeftOutMachine[] {
    return [...this.#machines.values()].filter(({ heardAtMs }) => nowMs - heardAtMs <= this.#forgetMs);
  }
}
