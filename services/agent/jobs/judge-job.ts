import type { RejectPayload, JobState } from "#shared/protocol/frame-payload.ts";
import type { JobHead, JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Silence } from "../runtimes/runtime.ts";

/** Bounds the `manage` jobs at once: models that are pulled, removed, loaded or unloaded. */
const manageJobsMax = 8;

/** The agent's state that admission checks, beside the schedule's own bounds. */
interface Admission {
  readonly draining: boolean;
  /** True if the machine offers the model that the job names. */
  readonly offersModel: boolean;
  /** The `manage` jobs that the agent holds. */
  readonly managing: number;
  readonly jobs: number;
  readonly receivingBytes: number;
}

/** Returns why the agent rejects a job, or undefined when it accepts it. Only hard facts count, no predictions. */
export function judgeAdmission(head: JobHead, agent: Admission): RejectPayload | undefined {
  if (agent.draining) return { reason: "draining", message: "The machine shuts down." };
  if (head.kind === "models") return undefined;
  if (head.kind === "manage") {
    return agent.managing < manageJobsMax
      ? undefined
      : busy(`The machine is busy with the models of ${manageJobsMax} other requests already (manageJobsMax).`);
  }
  if (!agent.offersModel) return { reason: "unknown_model", message: "The machine does not offer this model." };
  if (agent.jobs >= limits.jobsPerAgentMax) {
    return busy(`The machine holds ${limits.jobsPerAgentMax} requests already (jobsPerAgentMax).`);
  }
  if (head.sha256 !== undefined && agent.receivingBytes + head.bodyBytes > limits.receivingBytesMax) {
    return busy(`The machine is receiving ${limits.receivingBytesMax} bytes of requests already (receivingBytesMax).`);
  }
  return undefined;
}

export function busy(message: string): RejectPayload {
  return { reason: "busy", message };
}

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
