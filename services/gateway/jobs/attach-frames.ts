import { decodeJson, faultPayload } from "#shared/protocol/frame-payload.ts";
import type { Frame } from "#shared/protocol/frame.ts";
import type { FollowedJob, JobEnder } from "./job-events.ts";
import { answerNotFound, machineDisconnected, streamGap } from "./machine-fault.ts";

/** True for a frame that was sent to an earlier request of the same client, and was still under way. */
export function isEarlier({ kind, sequence, payload }: Frame, resumes: string, isOffered: boolean): boolean {
  if (sequence > 0) return isOffered;
  const fault = kind === "fault" ? decodeJson(faultPayload, payload) : undefined;
  return fault?.code === "job_moved" && fault.movedFrom !== resumes;
}

/**
 * Handles a fault frame with sequence 0. A machine sends it when it cannot resend the frames from `next` on that an attach
 * asked for, or when the client resumes the answer at another gateway.
 */
export function attachRefused(ender: JobEnder, { payload }: Frame, { resumes }: FollowedJob, next: number): void {
  const { code, countedTokens } = decodeJson(faultPayload, payload) ?? {};
  if (code === "job_moved") ender.moved(countedTokens);
  else if (resumes !== undefined) ender.fail(answerNotFound());
  else if (code === "stream_gap") ender.stop(streamGap(`the machine has frame ${next} no more`));
  else ender.fail(machineDisconnected("the machine does not know the job any more"));
}
