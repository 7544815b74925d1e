import { canAnswer } from "#shared/answer/answer-shape.ts";
import type { RejectPayload } from "#shared/protocol/frame-payload.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { manageShape } from "#shared/protocol/manage-job.ts";

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
  if (!(head.kind === "manage" ? head.shape === manageShape : canAnswer(head.kind, head.shape))) {
    return { reason: "unsupported", message: `This agent does not know how to answer ${head.kind} as ${head.shape}.` };
  }
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
