import type { Fault, FaultCode } from "#shared/fault/fault.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import type { BeatRow, EndPayload, JobState, LoadNews, ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** The one outcome of a job. */
export type JobOutcome =
  | {
      readonly kind: "end";
      readonly end: EndPayload;
      /** Bytes of the answer's records. */
      readonly receivedBytes: number;
      /** True if the machine had to wait because the client read too slowly. */
      readonly heldBack: boolean;
    }
  /** `taken` is false if the machine did not accept the job and began nothing of it, so that another one may run it. */
  | { readonly kind: "fault"; readonly fault: Fault; readonly taken: boolean };

/** An event of a job. Its owner hears of all of them in order, and of the outcome last, in the step in which the job ends. */
export type JobEvent =
  /** The machine has the job. `state` is set if the machine told it, `resumed` for an answer that is resumed. */
  | { readonly kind: "accepted"; readonly state?: JobState | undefined; readonly resumed?: ResumedAnswer | undefined }
  /** The machine has begun to answer; told more than once for an answer that comes in one piece. */
  | { readonly kind: "begun" }
  /** Records of the answer. `outputTokens` counts the answer's tokens so far. */
  | { readonly kind: "data"; readonly payload: Uint8Array; readonly outputTokens: number }
  /** The job's row in a beat of its machine, and the model that the machine is loading. */
  | { readonly kind: "beat"; readonly row: BeatRow; readonly load: LoadNews | undefined }
  /** Time passed while the job is open. `row` is the job's latest row of a beat. */
  | { readonly kind: "tick"; readonly nowMs: number; readonly row: BeatRow | undefined }
  | { readonly kind: "usage"; readonly usage: Usage }
  /** The client resumes the answer by another request, which counts the tokens behind `countedTokens`. */
  | { readonly kind: "moved"; readonly countedTokens: number }
  | JobOutcome;

/**
 * The owner of a job: it hears of everything that becomes of the job, and is asked about its client. A fault that it throws
 * for `data` or `end` cancels the job and becomes its outcome.
 */
export interface JobOwner {
  on(event: JobEvent): void;
  /** Returns the rendered bytes that the client has not read; undefined if no client's reading holds the answer back. */
  unreadBytes(): number | undefined;
  /** True if a part of the answer was passed on, so that no other machine can give it. */
  hasSaid(): boolean;
  /** True if the client of a resumable answer has left, and may come back. */
  hasLeft(): boolean;
  /** Returns the tokens up to which a resumable answer is counted. The books get no more of it while it is under way. */
  countTokens(): number;
  /** True if another machine has room to go on with the answer now. */
  mayGoOn(): boolean;
}

/** A message of a follower to the machine of its job. */
export type JobMessage =
  /** The job itself; for an answer that is resumed, the wish to be attached to it. */
  | { readonly kind: "job" }
  /** Asks for all frames from this sequence number on. */
  | { readonly kind: "attach"; readonly from: number; readonly credit: number }
  /** The bytes that the client has read, and those up to which the machine may send. */
  | { readonly kind: "credit"; readonly taken: number; readonly limit: number }
  | { readonly kind: "cancel"; readonly reason: "client_closed" | "slow_client" | "gave_up" }
  | { readonly kind: "probe" }
  | { readonly kind: "finish" };

/** A job as its follower knows it: its terms, and who hears of it. */
export interface FollowedJob {
  readonly kind: JobKind;
  readonly remainingMs: number;
  /** Bytes of records that the machine may send ahead of what its client has read. */
  readonly creditBytes: number;
  /** The bytes that its client has to read before the machine gets more. */
  readonly creditStepBytes: number;
  /** Time limit for the machine's first frame. Afterwards the job counts as not taken. */
  readonly acceptWithinMs: number;
  /** Names the request by which a client resumes an answer here: the job was given to its machine before. */
  readonly resumes: string | undefined;
  /** True if the answer may be resumed, so that the machine may have been granted more by another gateway. */
  readonly isResumable: boolean;
  /** The tokens up to which the machine was told that a resumable answer is counted. */
  readonly toldTokens: number | undefined;
  readonly owner: JobOwner;
  readonly meter: FrameMeter | undefined;
  readonly timing: Timing;
  send(message: JobMessage): void;
  /** Called when a part of the answer was passed on: no other machine is asked for the whole answer from then on. */
  said(): void;
  /** Called when the machine is unreachable: the broker reported no responders, or the machine stayed silent. */
  notReached(): void;
  settled(outcome: JobOutcome): void;
}

/** The follower of a job, which ends it. */
export interface JobEnder {
  /** Tells the machine to stop, and ends the job. */
  stop(fault: Fault): void;
  fail(fault: Fault, told?: { readonly taken: boolean }): void;
  moved(countedTokens: number | undefined): void;
}

/** Counts failovers, empty retry budgets and opened breakers. */
export interface PlacementMeter {
  failedOver(machine: string, code: FaultCode): void;
  retryBudgetEmpty(): void;
  breakerOpened(machine: string): void;
}

/** Counts replay requests, the frames that filled gaps, and dropped frames. */
export interface FrameMeter {
  replayAsked(): void;
  gapFilled(frames: number): void;
  frameDropped(reason: "unknown_job" | "other_machine" | "malformed" | "unknown_kind" | "other_version"): void;
}

/** Returns the owner of a job of the gateway itself, whose records are read as they come. */
export function recordsOf(read: (payload: Uint8Array) => void): JobOwner {
  return {
    on(event) {
      if (event.kind === "data") read(event.payload);
    },
    unreadBytes: () => undefined,
    hasSaid: () => true,
    hasLeft: () => false,
    countTokens: () => 0,
    mayGoOn: () => false,
  };
}
