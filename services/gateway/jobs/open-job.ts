import type { Log } from "#shared/process/log.ts";
import type { FloodGuard } from "../fleet/flood-guard.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { PartSender } from "./send-parts.ts";
import { createHash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import { type Control, encodeHead, type Headers, type JobHead } from "#shared/protocol/job.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { machineSubject, replySubject } from "#shared/protocol/subjects.ts";
import { timingOver, type Line, type Timing } from "#shared/protocol/timing.ts";
import { FrameFollower } from "./follow-frames.ts";
import type { JobListener, JobOutcome, JobWire } from "./job-listener.ts";
import type { Roster } from "../fleet/roster.ts";
import { type Target } from "../fleet/roster.ts";

export interface OpenJobsOptions {
  readonly broker: Broker;
  /** Id of this boot of the gateway, as its reply subjects carry it. */
  readonly gateway: string;
  readonly roster: Roster;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: FrameMeter;
  readonly floodGuard?: Pick<FloodGuard, "admits">;
}

/** Counts dropped frames, replay requests and the frames that filled gaps. */
export interface FrameMeter {
  replayAsked(): void;
  gapFilled(frames: number): void;
  frameDropped(reason: "unknown_job" | "other_machine" | "malformed" | "unknown_kind" | "other_version"): void;
}

export interface JobSubmission {
  readonly target: Target;
  readonly head: Omit<JobHead, "bodyBytes" | "sha256">;
  readonly body: Uint8Array;
  /** SHA-256 of the body, if it is known already. */
  readonly sha256?: string | undefined;
  /** True if the machine has the job already, and a client resumes its answer here. */
  readonly resumes?: boolean;
  /** Timeout of the acceptance. Undefined waits as long as the machine may be silent. */
  readonly acceptWithinMs?: number;
  readonly listener: JobListener;
  readonly placed?: PlacedJob;
  /** Cancels the job; the reason must be a Fault and becomes the outcome. */
  readonly signal: AbortSignal;
}

/** Receives the course of a job for the code that placed it. */
interface PlacedJob extends Pick<JobWire, "accepted" | "answering" | "bodyTaken"> {
  /** True if another machine has room to go on with the answer now. */
  mayGoOn?(): boolean;
  /** Called once, in the same step in which the job ends. */
  ended(outcome: JobOutcome): void;
}

/** The methods of `OpenJobs` that its jobs need. */
interface JobOwner {
  caughtUp(): Promise<unknown> | undefined;
  lineTo(target: Target): Line & { readonly roundTripMs: number };
  tell(target: Target, control: Control, reply?: string): void;
  finish(target: Target, job: string, when?: { readonly atOnce: boolean }): void;
  mayProbe(machine: string): boolean;
  bodyReleased(bytes: number): void;
  closed(job: OpenJob): void;
}

const nothing = new Uint8Array();

/** An open job: its body while that may be needed, its follower, and the messages to its machine. */
export class OpenJob implements JobWire {
  readonly id: string;
  /** The tokens up to which the machine was told that a resumable answer is counted here. */
  saidTokens: number | undefined;
  /** The tokens of a resumed answer that this gateway counts for the request before. */
  countedTokens: number | undefined;
  readonly target: Target;
  /** The reply subject of the job's answers, which no other job has. */
  readonly reply: string;
  readonly follower: FrameFollower;
  /** True if its answer may be resumed at any gateway. */
  readonly isResumable: boolean;
  readonly outcome: Promise<JobOutcome>;
  readonly #dependencies: OpenJobsOptions;
  readonly #owner: JobOwner;
  readonly #headers: Headers;
  readonly keyId: string;
  readonly #placed: PlacedJob | undefined;
  readonly #inParts: boolean;
  /** Names this request, if it resumes the answer of an earlier one. */
  readonly #resumes: string | undefined;
  readonly #creditBytes: number;
  readonly #countTokens: (() => number) | undefined;
  #body: Uint8Array;

  constructor(submission: JobSubmission, dependencies: OpenJobsOptions, owner: JobOwner) {
    const { target, head, body, listener, signal, placed, resumes = false } = submission;
    const line = owner.lineTo(target);
    const timing = timingOver(dependencies.timing, line);
    const { acceptWithinMs: offeredMs } = submission;
    const acceptWithinMs = offeredMs === undefined ? timing.lostAfterMs : offeredMs + line.roundTripMs;
    this.id = head.id;
    this.target = target;
    this.reply = replySubject({ gateway: dependencies.gateway, machine: target.machine, job: head.id });
    this.#dependencies = dependencies;
    this.#owner = owner;
    this.keyId = head.keyId ?? "";
    this.#placed = placed;
    this.#body = body;
    this.#resumes = resumes ? newToken() : undefined;
    this.isResumable = resumes || head.resumable !== undefined;
    this.#inParts = body.byteLength > limits.partBytes;
    const gathers = listener.backlogBytes === undefined;
    const streamCreditBytes = resumes ? limits.resumableBytes : limits.streamCreditBytes;
    const creditBytes = gathers ? limits.wholeCreditBytes : streamCreditBytes;
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
      resumes: this.#resumes,
      isResumable: this.isResumable,
      listener,
      timing,
      nowMs: dependencies.clock.now(),
      wire: this,
      settle: (outcome: JobOutcome) => {
        owner.closed(this);
        this.#release();
        placed?.ended(outcome);
        resolve(outcome);
      },
    };
    this.#creditBytes = creditBytes;
    this.#countTokens = listener.countTokens?.bind(listener);
    this.follower = new FrameFollower(follow, parts);
    // The signal lives as long as the request, and a settled job ignores a cancel. Removing the listener would cost
    // time and gain nothing.
    signal.addEventListener("abort", () => this.follower.cancel(Fault.from(signal.reason)), { once: true });
  }

  sendJob(): void {
    const { reply, target } = this;
    if (this.#resumes !== undefined) return this.#attach(1, this.#creditBytes, this.#resumes, this.countedTokens);
    const body = this.#inParts ? nothing : this.#body;
    this.#dependencies.broker.publish(machineSubject(target, "job"), body, { reply, headers: this.#headers });
  }

  accepted(): void {
    this.#placed?.accepted();
  }

  answering(): void {
    this.#placed?.answering();
  }

  bodyTaken(): void {
    this.#release();
    this.#placed?.bodyTaken();
  }

  sendProbe(): void {
    if (this.#owner.mayProbe(this.target.machine)) this.#tell({ kind: "probe", job: this.id });
  }

  sendAttach(from: number, credit: number): void {
    this.#dependencies.meter?.replayAsked();
    this.#attach(from, credit);
  }

  gapFilled(frames: number): void {
    this.#dependencies.meter?.gapFilled(frames);
  }

  sendCredit(taken: number, limit: number): void {
    this.#tell({ kind: "credit", job: this.id, taken, limit });
  }

  sendCancel(reason: "client_closed" | "slow_client" | "gave_up"): void {
    this.#tell({ kind: "cancel", job: this.id, reason });
  }

  sendFinish(): void {
    this.#owner.finish(this.target, this.id, { atOnce: this.isResumable });
  }

  caughtUp(): Promise<unknown> | undefined {
    return this.#owner.caughtUp();
  }

  /** Returns the tokens up to which a resumable answer is counted here, if they are more than at the last call. */
  countedNews(): [string, number][] {
    const tokens = this.isResumable ? this.#countTokens?.() : undefined;
    if (tokens === undefined || tokens === this.saidTokens) return [];
    this.saidTokens = tokens;
    return [[this.id, tokens]];
  }

  machineNotReached(): void {
    this.#dependencies.roster.notReached(this.target);
  }

  machineAwaited(): boolean {
    return this.#dependencies.roster.awaited(this.target.machine);
  }

  mayGoOn(): boolean {
    return this.#placed?.mayGoOn?.() ?? false;
  }

  #sendPart(offset: number, part: Uint8Array): void {
    const headers = encodeHead({ id: this.id, offset });
    this.#dependencies.broker.publish(machineSubject(this.target, "part"), part, { headers });
  }

  #attach(from: number, credit: number, resumes?: string, countedTokens?: number): void {
    this.#tell({ kind: "attach", job: this.id, from, keyId: this.keyId, credit, resumes, countedTokens });
  }

  #tell(control: Control): void {
    this.#owner.tell(this.target, control, this.reply);
  }

  #release(): void {
    this.#owner.bodyReleased(this.#body.byteLength);
    this.#body = nothing;
  }
}
