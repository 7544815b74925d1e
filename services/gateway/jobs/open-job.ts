import { createHash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { Control } from "#shared/protocol/control.ts";
import { encodeHead, type Headers, type JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { timingOver, type Timing } from "#shared/protocol/timing.ts";
import { FrameFollower } from "./follow-frames.ts";
import type { JobListener, JobOutcome, JobWire } from "./job-listener.ts";
import type { Target } from "../fleet/roster.ts";
import { PartSender } from "./send-parts.ts";

export interface JobSubmission {
  readonly target: Target;
  readonly head: Omit<JobHead, "bodyBytes" | "sha256">;
  readonly body: Uint8Array;
  /** SHA-256 of the body, if it is known already. */
  readonly sha256?: string | undefined;
  readonly acceptWithinMs: number;
  readonly listener: JobListener;
  readonly placed?: PlacedJob;
  /** Cancels the job; the reason must be a Fault and becomes the outcome. */
  readonly signal: AbortSignal;
}

/** Receives the course of a job for the code that placed it. */
export interface PlacedJob {
  /** Called when the machine has the job. */
  accepted(): void;
  /** Called when a part of the answer was passed on, so that the body can be released. */
  bodyTaken(): void;
  /** Called once, in the same step in which the job ends. */
  ended(outcome: JobOutcome): void;
}

/** The functions that an `OpenJob` needs from the owner of all jobs. */
export interface JobOwner {
  readonly timing: Timing;
  roundTripMsTo(target: Target): number;
  replyOf(target: Target, id: string): string;
  publishJob(job: {
    readonly target: Target;
    readonly reply: string;
    readonly headers: Headers;
    readonly body: Uint8Array;
  }): void;
  publishPart(target: Target, headers: Headers, part: Uint8Array): void;
  tell(job: { readonly target: Target; readonly reply: string }, told: Control): void;
  finish(target: Target, id: string): void;
  mayProbe(machine: string): boolean;
  replayAsked(): void;
  gapFilled(frames: number): void;
  notReached(target: Target): void;
  awaited(machine: string): boolean;
  bodyReleased(bytes: number): void;
  settled(job: OpenJob): void;
}

const nothing = new Uint8Array();

/** An open job: its body while that may be needed, its follower, and the messages to its machine. */
export class OpenJob implements JobWire {
  readonly id: string;
  readonly target: Target;
  /** The reply subject of the job's answers, which no other job has. */
  readonly reply: string;
  readonly follower: FrameFollower;
  readonly outcome: Promise<JobOutcome>;
  /** Index of the job in its machine's list, maintained by `OpenJobs`. */
  place = 0;
  readonly #owner: JobOwner;
  readonly #headers: Headers;
  readonly #keyId: string;
  readonly #placed: PlacedJob | undefined;
  readonly #inParts: boolean;
  #body: Uint8Array;

  constructor(submission: JobSubmission, owner: JobOwner, nowMs: number) {
    const { target, head, body, listener, signal, placed } = submission;
    const roundTripMs = owner.roundTripMsTo(target);
    const timing = timingOver(owner.timing, roundTripMs);
    const acceptWithinMs = submission.acceptWithinMs + roundTripMs;
    this.id = head.id;
    this.target = target;
    this.reply = owner.replyOf(target, head.id);
    this.#owner = owner;
    this.#keyId = head.keyId ?? "";
    this.#placed = placed;
    this.#body = body;
    this.#inParts = body.byteLength > limits.partBytes;
    const creditBytes = listener.backlogBytes === undefined ? limits.wholeCreditBytes : limits.streamCreditBytes;
    this.#headers = encodeHead({
      ...head,
      remainingMs: Math.ceil(head.remainingMs),
      bodyBytes: body.byteLength,
      sha256: this.#inParts ? (submission.sha256 ?? createHash("sha256").update(body).digest("hex")) : undefined,
      credit: creditBytes,
    });
    const { promise, resolve } = Promise.withResolvers<JobOutcome>();
    this.outcome = promise;
    const parts = this.#inParts
      ? new PartSender({ body, timing, send: (...part) => this.#sendPart(...part) })
      : undefined;
    const follow = {
      machine: target.machine,
      kind: head.kind,
      creditBytes,
      acceptWithinMs,
      remainingMs: head.remainingMs,
      listener,
      timing,
      nowMs,
      wire: this,
      settle: (outcome: JobOutcome) => {
        owner.settled(this);
        this.#release();
        placed?.ended(outcome);
        resolve(outcome);
      },
    };
    this.follower = new FrameFollower(follow, parts);
    // The signal lives as long as the request, and a settled job ignores a cancel. Removing the listener would cost
    // time and gain nothing.
    signal.addEventListener("abort", () => this.follower.cancel(Fault.from(signal.reason)), { once: true });
  }

  sendJob(): void {
    const { reply, target } = this;
    this.#owner.publishJob({ target, reply, headers: this.#headers, body: this.#inParts ? nothing : this.#body });
  }

  accepted(): void {
    this.#placed?.accepted();
  }

  bodyTaken(): void {
    this.#release();
    this.#placed?.bodyTaken();
  }

  sendProbe(): void {
    if (this.#owner.mayProbe(this.target.machine)) this.#owner.tell(this, { kind: "probe", job: this.id });
  }

  sendAttach(from: number, credit: number): void {
    this.#owner.replayAsked();
    this.#owner.tell(this, { kind: "attach", job: this.id, from, keyId: this.#keyId, credit });
  }

  gapFilled(frames: number): void {
    this.#owner.gapFilled(frames);
  }

  sendCredit(taken: number, limit: number): void {
    this.#owner.tell(this, { kind: "credit", job: this.id, taken, limit });
  }

  sendCancel(reason: "client_closed" | "slow_client" | "gave_up"): void {
    this.#owner.tell(this, { kind: "cancel", job: this.id, reason });
  }

  sendFinish(): void {
    this.#owner.finish(this.target, this.id);
  }

  machineNotReached(): void {
    this.#owner.notReached(this.target);
  }

  machineAwaited(): boolean {
    return this.#owner.awaited(this.target.machine);
  }

  #sendPart(offset: number, part: Uint8Array): void {
    this.#owner.publishPart(this.target, encodeHead({ id: this.id, offset }), part);
  }

  #release(): void {
    this.#owner.bodyReleased(this.#body.byteLength);
    this.#body = nothing;
  }
}
