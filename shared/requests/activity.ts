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

/** The requests of the whole time that one machine answered. */
const activityMachine = z.object({
  machine: z.string(),
  requests: count,
  failed: count,
  prompt_tokens: count,
  completion_tokens: count,
  first_token_ms: count.nullable(),
});

export const activity = z.object({
  step_seconds: z.int().positive(),
  machines: z.array(activityMachine).describe("By the machine that answered or failed last; the busiest first."),
  data: z.array(activityStep).describe("The oldest first; the last one is still running."),
  is_whole: z.boolean().describe("False if older requests of this time have no record any more, or too many have one."),
});
export type Activity = z.infer<typeof activity>;

/** Adds up requests by the time at which they ended, and by their machine. */
export class ActivityCounts {
  readonly #sinceMs: number;
  readonly #stepMs: number;
  readonly #steps: Sum[];
  readonly #machines = new Map<string, Sum>();

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
    this.#steps = Array.from({ length: Math.floor((untilMs - this.#sinceMs) / stepMs) + 1 }, zero);
  }

  add(record: RequestRecord): void {
    const { at, totalMs, machine } = record;
    const step = this.#steps[Math.floor((at + totalMs - this.#sinceMs) / this.#stepMs)];
    if (step === undefined) return;
    addTo(step, record);
    if (machine === undefined) return;
    const sum = this.#machines.get(machine) ?? zero();
    this.#machines.set(machine, sum);
    addTo(sum, record);
  }

  shown(): Pick<Activity, "data" | "machines"> {
    const data = this.#steps.map((sum, index) => ({
      at: new Date(this.#sinceMs + index * this.#stepMs).toISOString(),
      ...showSum(sum),
    }));
    const machines = [...this.#machines].map(([machine, sum]) => ({ machine, ...showSum(sum) }));
    return { data, machines: machines.toSorted((one, other) => other.requests - one.requests) };
  }
}

interface Sum {
  requests: number;
  failed: number;
  prompt: number;
  completion: number;
  readonly firstMs: number[];
}

function zero(): Sum {
  return { requests: 0, failed: 0, prompt: 0, completion: 0, firstMs: [] };
}

function addTo(sum: Sum, { code, promptTokens, completionTokens, firstTokenMs }: RequestRecord): void {
  sum.requests += 1;
  if (code !== "ok") sum.failed += 1;
  sum.prompt += promptTokens;
  sum.completion += completionTokens;
  if (firstTokenMs !== undefined) sum.firstMs.push(firstTokenMs);
}

function showSum({ requests, failed, prompt, completion, firstMs }: Sum) {
  const first_token_ms = median(firstMs);
  return { requests, failed, prompt_tokens: prompt, completion_tokens: completion, first_token_ms };
}

function median(values: readonly number[]): number | null {
  const middle = values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
  return middle === undefined ? null : Math.round(middle);
}
