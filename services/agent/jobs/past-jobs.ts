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
    this.#untilMs.set(job, nowMs + this.#rememberMs);
  }

  has(job: string): boolean {
    return this.#untilMs.has(job);
  }

  forgetOld(nowMs: number): void {
    for (const [job, untilMs] of this.#untilMs) if (nowMs >= untilMs) this.#untilMs.delete(job);
  }
}
