import { faultEntry, type Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import type { AgentJob } from "./agent-job.ts";
import type { FinishReason, Usage } from "#shared/protocol/answer-events.ts";

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

/**
 * Logs how a job ended: a failing machine is the operator's matter, an invalid request is not. The gateway's log has a
 * line with the job's id that names the request.
 */
export function logOutcome(
  log: Pick<Log, "debug" | "info" | "warn">,
  { head, gateway }: Pick<AgentJob, "head" | "gateway">,
  outcome: Outcome,
): void {
  const ties = { job: head.id, key: head.keyId, model: head.model, gateway };
  if (outcome.outcome === "end") {
    log.debug(ties, "job done");
    return;
  }
  const { code, reason: internal } = outcome.fault;
  const fields = { ...ties, code, internal };
  if (code === "cancelled") log.debug(fields, "job cancelled");
  else if (faultEntry(code).status < 500) log.info(fields, "job refused");
  else log.warn(fields, "job failed");
}

/** How a job ends, as its one terminal frame reports it. */
export type Outcome =
  | {
      readonly outcome: "end";
      readonly finishReason?: FinishReason | undefined;
      readonly usage?: Usage | undefined;
    }
  | { readonly outcome: "fault"; readonly fault: Fault; readonly usage?: Usage | undefined };
