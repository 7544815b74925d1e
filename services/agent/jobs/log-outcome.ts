import { faultEntry } from "#shared/fault/fault-code.ts";
import type { Log } from "#shared/process/log.ts";
import type { AgentJob } from "./agent-job.ts";
import type { Outcome } from "./outcome.ts";

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
