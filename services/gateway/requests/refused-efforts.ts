import type { Clock } from "#shared/process/clock.ts";

/** Time for which a refusal is remembered: by then another machine with the model may take the effort. */
export const refusedForMs = 60_000;
/** Refusals that are remembered. Clients choose neither models nor efforts freely, so more of them means a mistake. */
export const refusedEffortsMax = 1_000;

/**
 * Remembers which models lately refused an effort. Their next requests are sent without it at once, so that a long prompt
 * does not go to its machine twice.
 */
export class RefusedEfforts {
  readonly #clock: Pick<Clock, "now">;
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  note(model: string, effort: string): void {
    if (this.#untilMs.size >= refusedEffortsMax) this.#untilMs.clear();
    this.#untilMs.set(keyOf(model, effort), this.#clock.now() + refusedForMs);
  }

  has(model: string, effort: string): boolean {
    return (this.#untilMs.get(keyOf(model, effort)) ?? -Infinity) > this.#clock.now();
  }
}

function keyOf(model: string, effort: string): string {
  return `${effort} ${model}`;
}
