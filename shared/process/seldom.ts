import type { Clock } from "./clock.ts";

const forgetMs = 60_000;
const keysMax = 1_000;

/** Limits repeated log lines: each one at most once a minute, so that a flood does not fill the log. */
export class Seldom {
  readonly #clock: Pick<Clock, "now">;
  readonly #saidAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  isDue(what: string): boolean {
    const nowMs = this.#clock.now();
    const saidAtMs = this.#saidAtMs.get(what);
    if (saidAtMs !== undefined && nowMs - saidAtMs < forgetMs) return false;
    if (this.#saidAtMs.size >= keysMax) this.#saidAtMs.clear();
    this.#saidAtMs.set(what, nowMs);
    return true;
  }
}
