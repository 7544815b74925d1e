import { z } from "zod";
import type { RequestRecord } from "./request-record.ts";

const count = z.int().nonnegative();

/** The requests that ended within one step of time. */
const activityStep = z.object({
  at: z.iso.datetime().describe("When the step began."),
  requests: count,
  failed: count.describe("Of these, how many did not end well."),
  prompt_tokens: count,
  completion_tokens: count,
  first_token_ms: count.nullable().describe("The median wait for a first token; null where none came."),
});
export type ActivityStep = z.infer<typeof activityStep>;

export const activity = z.object({
  step_seconds: z.int().positive(),
  data: z.array(activityStep).describe("The oldest first; the last one is still running."),
  is_whole: z.boolean().describe("False if older requests of this time have no record any more, or too many have one."),
});
export type Activity = z.infer<typeof activity>;

/** Adds up requests by the time at which they ended. */
export class ActivityCounts {
  readonly #sinceMs: number;
  readonly #stepMs: number;
  readonly #steps: { requests: number; failed: number; prompt: number; completion: number; firstMs: number[] }[];

  constructor({
    sinceMs,
    untilMs,
    stepMs,
  }: {
    readonly sinceMs: number;
    readonly untilMs: number;
    readonly stepMs: number;
  }) {
    this.#sinceMs = Math.floor(sinceMs / stepMs) * stepMs;
    this.#stepMs = stepMs;
    const length = Math.floor((untilMs - this.#sinceMs) / stepMs) + 1;
    this.#steps = Array.from({ length }, () => ({ requests: 0, failed: 0, prompt: 0, completion: 0, firstMs: [] }));
  }

  add({ at, totalMs, code, promptTokens, completionTokens, firstTokenMs }: RequestRecord): void {
    const step = this.#steps[Math.floor((at + totalMs - this.#sinceMs) / this.#stepMs)];
    if (step === undefined) return;
    step.requests += 1;
    if (code !== "ok") step.failed += 1;
    step.prompt += promptTokens;
    step.completion += completionTokens;
    if (firstTokenMs !== undefined) step.firstMs.push(firstTokenMs);
  }

  shown(): ActivityStep[] {
    return this.#steps.map(({ requests, failed, prompt, completion, firstMs }, place) => ({
      at: new Date(this.#sinceMs + place * this.#stepMs).toISOString(),
      requests,
      failed,
      prompt_tokens: prompt,
      completion_tokens: completion,
      first_token_ms: median(firstMs),
    }));
  }
}

function median(values: readonly number[]): number | null {
  const middle = values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
  return middle === undefined ? null : Math.round(middle);
}
