/**
 * Ids of jobs that are over, or were cancelled before they came, for as long as a late message about them may still be
 * under way: a job id that was seen once is never run again.
 */
export class PastJobs {
  readonly #rememberMs: number;
  readonly #untilMs = new Map<string, number>();

  constructor(rememberMs: number) {
    this.#rememberMs = rememberMs;
  }

  add(job: string, nowMs: number): void {
    // One that is added again is the youngest anew: they stand in the order in which they are forgotten.
    this.#untilMs.delete(job);
    this.#untilMs.set(job, nowMs + this.#rememberMs);
  }

  has(job: string): boolean {
    return this.#untilMs.has(job);
  }

  forgetOld(nowMs: number): void {
    for (const [job, untilMs] of this.#untilMs) {
      if (nowMs < untilMs) return;
      this.#untilMs.delete(job);
    }
  }
}
