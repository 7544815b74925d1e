import type { Log } from "#shared/process/log.ts";
import type { FloodGuard } from "../fleet/flood-guard.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Broker } from "#shared/broker/broker.ts";
import type { BrokerLine } from "./broker-line.ts";
import { PartSender } from "./send-parts.ts";
import { createHash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import { type Control, encodeHead, type Headers, type JobHead } from "#shared/protocol/job.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { machineSubject, replySubject } from "#shared/protocol/subjects.ts";
import { timingOver, type Timing } from "#shared/protocol/timing.ts";
import { FrameFollower } from "./follow-frames.ts";
import type { FrameMeter, JobMessage, JobOutcome, JobOwner } from "./job-events.ts";
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
  readonly owner: JobOwner;
  /** Cancels the job; the reason must be a Fault and becomes the outcome. */
  readonly signal: AbortSignal;
}

/** The methods of `OpenJobs` that its jobs need. */
interface JobsAround {
  readonly line: BrokerLine;
  tell(target: Target, control: Control, reply?: string): void;
  finish(target: Target, job: string, when: { readonly atOnce: boolean }): void;
  mayProbe(machine: string): boolean;
  bodyReleased(bytes: number): void;
  closed(job: OpenJob): void;
}

const nothing = new Uint8Array();

/** An open job: its body while that may be needed, its follower, and the messages to its machine. */
export class OpenJob {
  readonly id: string;
  readonly keyId: string;
  readonly target: Target;
  /** The reply subject of the job's answers, which no other job has. */
  readonly reply: string;
  readonly follower: FrameFollower;
  /** True if its answer may be resumed at any gateway. */
  readonly isResumable: boolean;
  readonly outcome: Promise<JobOutcome>;
  readonly #dependencies: OpenJobsOptions;
  readonly #around: JobsAround;
  readonly #owner: JobOwner;
  readonly #headers: Headers;
  readonly #inParts: boolean;
  /** Names this request, if it resumes the answer of an earlier one. */
  readonly #resumes: string | undefined;
  readonly #creditBytes: number;
  /** The tokens of a resumed answer that this gateway counts for the request before. */
  readonly #countedTokens: number | undefined;
  #body: Uint8Array;

  constructor(
    submission: JobSubmission,
    dependencies: OpenJobsOptions,
    around: JobsAround,
    countedTokens: number | undefined,
  ) {
    const { target, head, body, owner, signal, resumes = false } = submission;
    this.id = head.id;
    this.keyId = head.keyId ?? "";
    this.target = target;
    this.reply = replySubject({ gateway: dependencies.gateway, machine: target.machine, job: head.id });
    this.#dependencies = dependencies;
    this.#around = around;
    this.#owner = owner;
    this.#body = body;
    this.#resumes = resumes ? newToken() : undefined;
    this.isResumable = resumes || head.resumable !== undefined;
    this.#countedTokens = countedTokens;
    this.#inParts = body.byteLength > limits.partBytes;
    const streamCreditBytes = resumes ? limits.resumableBytes : limits.streamCreditBytes;
    this.#creditBytes = owner.unreadBytes() === undefined ? limits.wholeCreditBytes : streamCreditBytes;
    this.#headers = encodeHead({
      ...head,
      remainingMs: Math.ceil(head.remainingMs),
      bodyBytes: body.byteLength,
      sha256: this.#inParts ? (submission.sha256 ?? createHash("sha256").update(body).digest("hex")) : undefined,
      credit: this.#creditBytes,
    });
    const { promise, resolve } = Promise.withResolvers<JobOutcome>();
    this.outcome = promise;
    this.follower = this.#follow(submission, resolve);
    // The signal lives as long as the request, and a settled job ignores a cancel. Removing the listener would cost
    // time and gain nothing.
    signal.addEventListener("abort", () => this.follower.cancel(Fault.from(signal.reason)), { once: true });
  }

  #follow({ head, acceptWithinMs: offeredMs }: JobSubmission, resolve: (outcome: JobOutcome) => void): FrameFollower {
    const { timing: siteTiming, clock, roster, meter } = this.#dependencies;
    const line = this.#around.line.to(this.target);
    const timing = timingOver(siteTiming, line);
    const send = (offset: number, part: Uint8Array): void => this.#sendPart(offset, part);
    return new FrameFollower(
      {
        kind: head.kind,
        creditBytes: this.#creditBytes,
        acceptWithinMs: offeredMs === undefined ? timing.lostAfterMs : offeredMs + line.roundTripMs,
        remainingMs: head.remainingMs,
        resumes: this.#resumes,
        isResumable: this.isResumable,
        owner: this.#owner,
        send: (message) => this.#send(message),
        said: () => this.#release(),
        notReached: () => roster.notReached(this.target),
        meter,
        timing,
        nowMs: clock.now(),
        settle: (outcome) => {
          this.#around.closed(this);
          this.#release();
          resolve(outcome);
        },
      },
      this.#inParts ? new PartSender({ body: this.#body, timing, send }) : undefined,
    );
  }

  /** Returns the tokens up to which a resumable answer is counted here, if they are more than at the last call. */
  countedNews(): [string, number][] {
    const tokens = this.follower.tellCounted();
    return tokens === undefined ? [] : [[this.id, tokens]];
  }

  /** True if another machine has room to go on with the answer now. */
  mayGoOn(): boolean {
    return this.#owner.mayGoOn();
  }

  #send(message: JobMessage): void {
    switch (message.kind) {
      case "job":
        if (this.#resumes === undefined) return this.#sendJob();
        return this.#attach({ from: 1, credit: this.#creditBytes }, this.#resumes, this.#countedTokens);
      case "attach":
        return this.#attach(message);
      case "probe":
        if (this.#around.mayProbe(this.target.machine)) this.#tell({ kind: "probe", job: this.id });
        return;
      case "credit":
      case "cancel":
        return this.#tell({ ...message, job: this.id });
      case "finish":
        return this.#around.finish(this.target, this.id, { atOnce: this.isResumable });
    }
  }

  #sendJob(): void {
    const body = this.#inParts ? nothing : this.#body;
    const { reply } = this;
    this.#dependencies.broker.publish(machineSubject(this.target, "job"), body, { reply, headers: this.#headers });
  }

  #sendPart(offset: number, part: Uint8Array): void {
    const headers = encodeHead({ id: this.id, offset });
    this.#dependencies.broker.publish(machineSubject(this.target, "part"), part, { headers });
  }

  #attach(
    { from, credit }: { readonly from: number; readonly credit: number },
    resumes?: string,
    countedTokens?: number,
  ): void {
    this.#tell({ kind: "attach", job: this.id, from, keyId: this.keyId, credit, resumes, countedTokens });
  }

  #tell(control: Control): void {
    this.#around.tell(this.target, control, this.reply);
  }

  #release(): void {
    this.#around.bodyReleased(this.#body.byteLength);
    this.#body = nothing;
  }
}
