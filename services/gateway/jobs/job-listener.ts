import type { Fault } from "#shared/fault/fault.ts";
import type { DeliveredAnswer } from "./continue-answer.ts";
import type { Chosen } from "../routing/choose-machine.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import type { BeatRow, EndPayload, JobState, LoadNews, ResumedAnswer } from "#shared/protocol/frame-payload.ts";

/** A job offered to a machine, and the machines that come next in the ranking. */
export interface JobOffer {
  readonly job: string;
  readonly chosen: Chosen;
  readonly next: readonly Chosen[];
}

/** Receives the events of one job from its `FrameFollower`. All calls come before the outcome. */
export interface JobListener {
  /** Called when the machine has the job. `state` is set if the machine reported it, `resumed` for an answer that is resumed. */
  onAccept?(machine: string, state?: JobState, resumed?: ResumedAnswer): void;
  /** Called with the job's row in a beat of its machine, and the model that the machine is loading. */
  onBeat?(row: BeatRow, load?: LoadNews): void;
  /**
   * Called with the payload of a data frame. `outputTokens` counts the answer's tokens so far. A Fault that it throws
   * cancels the job and becomes its outcome.
   */
  onData(payload: Uint8Array, outputTokens: number): void;
  /** Called after the last data frame of a complete answer. It may throw a Fault, like `onData`. */
  onEnd?(outputTokens: number): void;
  /** Called at the end with the job's token usage, if the machine knows it. */
  onUsage?(usage: Usage): void;
  /** Called at the end with the machine's timings: how long the job waited and ran there. */
  onTimings?(timings: EndPayload["timings"]): void;
  /**
   * Returns the rendered bytes that this listener's client has not read. Undefined when there is no client to wait for.
   */
  backlogBytes?(): number;
  /** True if a part of the answer was passed on. A listener without this method passes on every piece. */
  hasSaid?(): boolean;
  /**
   * Called when the client resumes the answer by another request, perhaps with the tokens up to which the machine wants
   * this one to count. Returns the tokens that are counted up to this one.
   */
  onMoved?(countedTokens?: number): number;
  /** Returns the tokens up to which a resumable answer is counted. The books get no more of it while it is under way. */
  countTokens?(): number;
  /** True if the client of the answer has left, and may come back. */
  hasLeft?(): boolean;
  /** Called at a steady pace while the job is open, with the job's latest row of a beat. */
  onTick?(nowMs: number, row: BeatRow | undefined): void;
}

/** Follows all jobs of one request, which are offered one after the other. */
export interface OfferListener extends JobListener {
  /** The part of the answer that was passed on; undefined if no other machine may go on with it. */
  readonly delivered?: DeliveredAnswer | undefined;
  /** Tokens of the answer that were passed on. */
  readonly outputTokens?: number;
  /**
   * Called before a machine is offered the job: the first machine, or the next one after the previous machine did not
   * complete it.
   */
  onOffer(offer: JobOffer): void;
  /** Called when the machine did not accept the job that it was offered. */
  onRefused(fault: Fault): void;
  /** Called when the machine had accepted the job and did not complete it. */
  onFailed(fault: Fault): void;
}

export type JobOutcome =
  | { readonly outcome: "end"; readonly end: EndPayload; readonly receivedBytes: number; readonly heldBack: boolean }
  /** The machine did not accept the job and began nothing of it. Another machine may run it. */
  | { readonly outcome: "not-taken"; readonly fault: Fault }
  /**
   * The machine accepted the job and the job failed, or the machine died with the job before. With `said`, a part of this
   * machine's answer was passed on.
   */
  | { readonly outcome: "fault"; readonly fault: Fault; readonly said: boolean };

/** Sends a follower's messages to the machine of its job, and reports progress to the job's owner. */
export interface JobWire {
  /** Called when the machine has the job. */
  accepted(): void;
  /** Called when the machine has begun to answer; perhaps more than once. */
  answering(): void;
  sendJob(): void;
  /**
   * Called when a part of the answer was passed on. No other machine is asked for the whole answer afterwards, so the body
   * can be released.
   */
  bodyTaken(): void;
  sendProbe(): void;
  /** Asks the machine for all frames from this sequence number on. */
  sendAttach(from: number, credit: number): void;
  sendCredit(taken: number, limit: number): void;
  sendCancel(reason: "client_closed" | "slow_client" | "gave_up"): void;
  sendFinish(): void;
  /** The tokens up to which the machine was told that a resumable answer is counted. */
  readonly saidTokens?: number | undefined;
  /** Resolves when all messages of a pause of this gateway were read. Undefined if it did not pause. */
  caughtUp?(): Promise<unknown> | undefined;
  /** Called when a gap in the answer is filled. `frames` counts the frames that filled it. */
  gapFilled?(frames: number): void;
  /** Called when the machine is unreachable: the broker reported no responders, or the machine stayed silent. */
  machineNotReached(): void;
  /**
   * True if the machine was not heard since the gateway's own connection came up. The machine may still be
   * reconnecting.
   */
  machineAwaited(): boolean;
}
