import type { Fault, FaultCode } from "#shared/fault/fault.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import type { BeatRow, EndPayload, JobState, LoadNews, ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { Granted } from "./credit.ts";

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
  | ({ readonly kind: "credit" } & Granted)
  | { readonly kind: "cancel"; readonly reason: "client_closed" | "slow_client" | "gave_up" }
  | { readonly kind: "probe" }
  | { readonly kind: "finish" };

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

/** The owner of a job of the gateway itself, whose records are read as they come. */
export class RecordsOf implements JobOwner {
  readonly #read: (payload: Uint8Array) => void;

  constructor(read: (payload: Uint8Array) => void) {
    this.#read = read;
  }

  on(event: JobEvent): void {
    if (event.kind === "data") this.#read(event.payload);
  }

  unreadBytes(): undefined {
    return undefined;
  }

  hasSaid(): boolean {
    return true;
  }

  hasLeft(): boolean {
    return false;
  }

  countTokens(): number {
    return 0;
  }

  mayGoOn(): boolean {
    return false;
  }
}
