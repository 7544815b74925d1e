import type { Presence } from "#shared/protocol/presence.ts";

/** Why a machine that is heard is not taken up. */
export type LeftOutCause = "older" | "other-scale";

export interface LeftOutMachine {
  readonly presence: Presence;
  readonly cause: LeftOutCause;
  readonly heardAtMs: number;
}

/** So many machines that are left out are remembered; beyond it those that were heard least lately are forgotten. */
export const leftOutMax = 1_000;

/** The machines that announce themselves and get no work for what they announce, so that somebody can be told. */
export class LeftOut {
  readonly #forgetMs: number;
  /** By machine and boot. What was heard last is the last. */
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
