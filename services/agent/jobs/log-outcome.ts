import { faultEntry } from "#shared/fault/fault-code.ts";
import type { Log } from "#shared/process/log.ts";
import type { AgentJob } from "./agent-job.ts";
import type { Outcome } from "./outcome.ts";

/**
 * Tells the log how a job ended: a machine that fails is the operator's matter, a request that was wrong is not. By the
 * job's id the gateway that asked has a line of the request that it was for.
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
  const { code, internal } = outcome.fault;
  const fields = { ...ties, code, internal };
  if (code === "cancelled") log.debug(fields, "job cancelled");
  else if (faultEntry(code).status < 500) log.info(fields, "job refused");
  else log.warn(fields, "job failed");
}
