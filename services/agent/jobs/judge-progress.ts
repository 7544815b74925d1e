import { Fault } from "#shared/fault/fault.ts";
import type { JobState } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Silence } from "../runtimes/runtime.ts";

interface Progress {
  readonly state: JobState;
  readonly acceptedAtMs: number;
  readonly progressAtMs: number;
  /** True while the runtime is not read on because the client is slow: its silence then does not count. */
  readonly heldBack?: boolean;
  /** The runtime's phase, if it is not answering: it may be silent for longer then. */
  readonly silence?: Silence | undefined;
  readonly head: { readonly kind: JobKind; readonly remainingMs: number };
}

/** Returns the fault that ends a job that waited, hung or ran for too long; undefined otherwise. */
export function judgeProgress(job: Progress, nowMs: number, timing: Timing): Fault | undefined {
  if (job.state === "ended") return undefined;
  const totalMs = Math.min(job.head.remainingMs, job.head.kind === "manage" ? Infinity : timing.jobTotalMs);
  if (nowMs - job.acceptedAtMs > totalMs) {
    return timedOut(`The request took longer than ${totalMs} ms in all (jobTotalMs).`);
  }
  const silentMs = nowMs - job.progressAtMs;
  if (job.state === "queued" || job.heldBack) return undefined;
  if (job.state === "receiving") {
    return silentMs > timing.partsWaitMs
      ? timedOut(`The rest of the request did not reach the machine within ${timing.partsWaitMs} ms (partsWaitMs).`)
      : undefined;
  }
  if (job.head.kind === "manage") {
    return silentMs > timing.manageSilentMs
      ? timedOut(`The runtime showed no progress for ${timing.manageSilentMs} ms (manageSilentMs).`)
      : undefined;
  }
  if (job.state === "running" && job.silence === undefined) {
    return silentMs > timing.noProgressMs
      ? timedOut(`The model said nothing for ${timing.noProgressMs} ms in the middle of its answer (noProgressMs).`)
      : undefined;
  }
  return silentMs > timing.firstTokenMs
    ? timedOut(`The model said nothing for ${timing.firstTokenMs} ms before its answer (firstTokenMs).`)
    : undefined;
}

function timedOut(message: string): Fault {
  return new Fault("upstream_timeout", { message });
}
