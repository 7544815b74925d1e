import type { Clock } from "#shared/process/clock.ts";

/** A request with an effort, and the models that may answer it. */
interface WithEffort {
  readonly targets: readonly { readonly modelId: string }[];
  readonly effort?: { readonly value: string } | undefined;
}

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

  note(request: WithEffort): void {
    if (this.#untilMs.size >= refusedEffortsMax) this.#untilMs.clear();
    this.#untilMs.set(keyOf(request), this.#clock.now() + refusedForMs);
  }

  /** True if the model of a request lacks the effort that the request asks for. */
  has(request: WithEffort): boolean {
    return request.effort !== undefined && (this.#untilMs.get(keyOf(request)) ?? -Infinity) > this.#clock.now();
  }
}

function keyOf({ targets: [first], effort }: WithEffort): string {
  return `${effort?.value} ${first?.modelId}`;
}
