import { faultEntry } from "#shared/fault/fault-code.ts";
import type { Log } from "#shared/process/log.ts";
import type { Outcome } from "./outcome.ts";

/** Tells the log how a job ended: a machine that fails is the operator's matter, a request that was wrong is not. */
export function logOutcome(log: Pick<Log, "debug" | "info" | "warn">, job: string, outcome: Outcome): void {
  if (outcome.outcome === "end") {
    log.debug({ job }, "job done");
    return;
  }
  const { code, internal } = outcome.fault;
  const fields = { job, code, internal };
  if (code === "cancelled") log.debug(fields, "job cancelled");
  else if (faultEntry(code).status < 500) log.info(fields, "job refused");
  else log.warn(fields, "job failed");
}
