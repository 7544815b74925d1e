import { Fault } from "#shared/fault/fault.ts";
import type { JobState } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Timing } from "#shared/protocol/timing.ts";

interface Progress {
  readonly state: JobState;
  readonly acceptedAtMs: number;
  readonly progressAtMs: number;
  readonly head: { readonly kind: JobKind; readonly remainingMs: number };
}

/** Whether a job has waited, hung or run for too long, and then the fault that ends it. */
export function judgeProgress(job: Progress, nowMs: number, timing: Timing): Fault | undefined {
  if (job.state === "ended") return undefined;
  const totalMs = Math.min(job.head.remainingMs, job.head.kind === "manage" ? Infinity : timing.jobTotalMs);
  if (nowMs - job.acceptedAtMs > totalMs) {
    return timedOut(`The request took longer than ${totalMs} ms in all (jobTotalMs).`);
  }
  const silentMs = nowMs - job.progressAtMs;
  if (job.state === "queued") return undefined;
  if (job.state === "receiving") {
    return silentMs > timing.partsWaitMs
      ? timedOut(`The rest of the request did not reach the machine within ${timing.partsWaitMs} ms (partsWaitMs).`)
      : undefined;
  }
  if (job.state === "running") {
    return silentMs > timing.noProgressMs
      ? timedOut(`The model said nothing for ${timing.noProgressMs} ms in the middle of its answer (noProgressMs).`)
      : undefined;
  }
  return silentMs > timing.firstTokenMs
    ? timedOut(`The model did not begin its answer within ${timing.firstTokenMs} ms (firstTokenMs).`)
    : undefined;
}

function timedOut(message: string): Fault {
  return new Fault("upstream_timeout", { message });
}
