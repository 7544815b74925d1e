/**
 * Remembers the ids of jobs that are over, or were cancelled before they arrived. It keeps them while a late message
 * about them may still be under way. A job id that was seen once is never run again.
 */
export class PastJobs {
  readonly #rememberMs: number;
  readonly #untilMs = new Map<string, number>();

  constructor(rememberMs: number) {
    this.#rememberMs = rememberMs;
  }

  add(job: string, nowMs: number): void {
    // An id that is added again becomes the newest: the map is in the order in which ids are forgotten.
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
