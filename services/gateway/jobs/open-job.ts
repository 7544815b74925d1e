import type { Log } from "#shared/process/log.ts";
import type { FloodGuard } from "../fleet/flood-guard.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { PartSender } from "./send-parts.ts";
import { createHash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import { type Control, encodeHead, type Headers, type JobHead, type JobKind } from "#shared/protocol/job.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { roundTripMsMax } from "#shared/protocol/presence.ts";
import { machineSubject, replySubject } from "#shared/protocol/subjects.ts";
import { type Line, timingOver, type Timing } from "#shared/protocol/timing.ts";
import { FrameFollower } from "./follow-frames.ts";
import type { FollowedJob, FrameMeter, JobMessage, JobOutcome, JobOwner } from "./job-events.ts";
import type { Roster, Target } from "../fleet/roster.ts";

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
  tell(target: Target, control: Control, reply?: string): void;
  finish(target: Target, job: string, when: { readonly atOnce: boolean }): void;
  mayProbe(machine: string): boolean;
  bodyReleased(bytes: number): void;
  closed(job: OpenJob): void;
}

/** A shorter round trip between this gateway and the broker changes no timeout. */
const roundTripMsNoticed = 100;

/** Returns the line from this gateway to a machine. Each end counts only a long round trip to the broker. */
export function lineTo(
  { machine }: Pick<Target, "machine">,
  { broker, clock, roster }: Pick<OpenJobsOptions, "broker" | "clock" | "roster">,
): Line & { readonly roundTripMs: number } {
  const { roundTripMs = 0, tunnelled = false } = roster.find(machine, clock.now())?.presence ?? {};
  const ownMs = broker.roundTripMs < roundTripMsNoticed ? 0 : Math.min(broker.roundTripMs, roundTripMsMax);
  return { roundTripMs: roundTripMs + ownMs, tunnelled };
}

const nothing = new Uint8Array();

/** An open job: its terms, its body while that may be needed, its follower, and the messages to its machine. */
export class OpenJob implements FollowedJob {
  readonly id: string;
  readonly keyId: string;
  readonly target: Target;
  /** The reply subject of the job's answers, which no other job has. */
  readonly reply: string;
  readonly kind: JobKind;
  readonly remainingMs: number;
  readonly creditBytes: number;
  readonly creditStepBytes: number;
  readonly acceptWithinMs: number;
  readonly resumes: string | undefined;
  readonly isResumable: boolean;
  readonly owner: JobOwner;
  readonly meter: FrameMeter | undefined;
  readonly timing: Timing;
  toldTokens: number | undefined;
  readonly follower: FrameFollower;
  readonly outcome: Promise<JobOutcome>;
  readonly #dependencies: OpenJobsOptions;
  readonly #around: JobsAround;
  readonly #headers: Headers;
  readonly #inParts: boolean;
  /** The tokens of a resumed answer that this gateway counts for the request before. */
  readonly #countedTokens: number | undefined;
  readonly #resolve: (outcome: JobOutcome) => void;
  #body: Uint8Array;

  constructor(
    { target, head, body, sha256, owner, signal, resumes = false, acceptWithinMs: offeredMs }: JobSubmission,
    dependencies: OpenJobsOptions,
    around: JobsAround,
    countedTokens: number | undefined,
  ) {
    const { gateway, clock, meter } = dependencies;
    const line = lineTo(target, dependencies);
    this.id = head.id;
    this.keyId = head.keyId ?? "";
    this.target = target;
    this.reply = replySubject({ gateway, machine: target.machine, job: head.id });
    this.kind = head.kind;
    this.remainingMs = head.remainingMs;
    this.owner = owner;
    this.meter = meter;
    this.timing = timingOver(dependencies.timing, line);
    this.acceptWithinMs = offeredMs === undefined ? this.timing.lostAfterMs : offeredMs + line.roundTripMs;
    this.resumes = resumes ? newToken() : undefined;
    this.isResumable = resumes || head.resumable !== undefined;
    const streamCreditBytes = resumes ? limits.resumableBytes : limits.streamCreditBytes;
    this.creditBytes = owner.unreadBytes() === undefined ? limits.wholeCreditBytes : streamCreditBytes;
    this.creditStepBytes = Math.min(this.creditBytes / 2, limits.creditStepBytes);
    this.#dependencies = dependencies;
    this.#around = around;
    this.#countedTokens = countedTokens;
    this.#body = body;
    this.#inParts = body.byteLength > limits.partBytes;
    this.#headers = encodeHead({
      ...head,
      remainingMs: Math.ceil(head.remainingMs),
      bodyBytes: body.byteLength,
      sha256: this.#inParts ? (sha256 ?? createHash("sha256").update(body).digest("hex")) : undefined,
      credit: this.creditBytes,
    });
    const { promise, resolve } = Promise.withResolvers<JobOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.follower = new FrameFollower(this, clock.now(), this.#inParts ? this.#partsOf(body) : undefined);
    // The signal lives as long as the request, and a settled job ignores a cancel. Removing the listener would cost
    // time and gain nothing.
    signal.addEventListener("abort", () => this.follower.cancel(Fault.from(signal.reason)), { once: true });
  }

  /** Returns the tokens up to which a resumable answer is counted here, if they are more than at the last call. */
  countedNews(): [string, number][] {
    const tokens = this.isResumable ? this.owner.countTokens() : undefined;
    if (tokens === undefined || tokens === this.toldTokens) return [];
    this.toldTokens = tokens;
    return [[this.id, tokens]];
  }

  said(): void {
    this.#around.bodyReleased(this.#body.byteLength);
    this.#body = nothing;
  }

  notReached(): void {
    this.#dependencies.roster.notReached(this.target);
  }

  settled(outcome: JobOutcome): void {
    this.#around.closed(this);
    this.said();
    this.#resolve(outcome);
  }

  send(message: JobMessage): void {
    switch (message.kind) {
      case "job":
        if (this.resumes === undefined) return this.#sendJob();
        return this.#attach({ from: 1, credit: this.creditBytes }, this.resumes, this.#countedTokens);
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

  #partsOf(body: Uint8Array): PartSender {
    const send = (offset: number, part: Uint8Array): void => {
      const headers = encodeHead({ id: this.id, offset });
      this.#dependencies.broker.publish(machineSubject(this.target, "part"), part, { headers });
    };
    return new PartSender({ body, timing: this.timing, send });
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
}
