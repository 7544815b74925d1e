import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { AgentJob } from "./agent-job.ts";

/** Bounds the ended answers that are kept for clients that may resume them; the oldest are dropped first. */
const leftAnswersMax = 64;

/** Keeps resumable answers that are over, and decides how long those may go on that nobody waits for. */
export class LeftAnswers {
  readonly #timing: Pick<Timing, "resumableForMs">;
  /** In the order in which they were left. */
  readonly #answers = new Map<string, AgentJob>();

  constructor(timing: Pick<Timing, "resumableForMs">) {
    this.#timing = timing;
  }

  get(id: string): AgentJob | undefined {
    return this.#answers.get(id);
  }

  keep(job: AgentJob): void {
    this.#answers.set(job.head.id, job);
    for (const oldest of this.#answers.values()) {
      if (this.#answers.size <= leftAnswersMax) break;
      this.#drop(oldest);
    }
  }

  delete(id: string): void {
    this.#answers.delete(id);
  }

  forgetOld(nowMs: number): void {
    for (const job of this.#answers.values()) {
      if (nowMs - (job.leftAtMs ?? 0) < this.#timing.resumableForMs) return;
      this.#drop(job);
    }
  }

  /** Returns the fault that ends an answer which runs without a client for too long, or got too long to be resumed. */
  judge({ leftAtMs, frames }: Pick<AgentJob, "leftAtMs" | "frames">, nowMs: number): Fault | undefined {
    const { resumableForMs } = this.#timing;
    if (leftAtMs === undefined) return undefined;
    if (nowMs - leftAtMs >= resumableForMs)
      return cancelled(`No client resumed the answer within ${resumableForMs} ms (resumableForMs).`);
    if (frames.heldBack)
      return cancelled(`The answer is longer than the ${limits.resumableBytes} bytes that are kept (resumableBytes).`);
    return undefined;
  }

  #drop(job: AgentJob): void {
    job.frames.release();
    this.#answers.delete(job.head.id);
  }
}

function cancelled(message: string): Fault {
  return new Fault("cancelled", { message });
}
